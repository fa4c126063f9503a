/*
 * The functions behind the command table, one block per family of commands.
 */
#ifndef VELLUM_COMMANDS_H
#define VELLUM_COMMANDS_H

#include "command.h"

/* ---- connection and server ---- */
command_fn cmd_auth;
command_fn cmd_client_getname;
command_fn cmd_client_help;
command_fn cmd_client_id;
command_fn cmd_client_info;
command_fn cmd_client_kill;
command_fn cmd_client_list;
command_fn cmd_client_no_evict;
command_fn cmd_client_no_touch;
command_fn cmd_client_reply;
command_fn cmd_client_setinfo;
command_fn cmd_client_setname;
command_fn cmd_echo;
command_fn cmd_hello;
command_fn cmd_ping;
command_fn cmd_quit;
command_fn cmd_reset;
command_fn cmd_select;
command_fn cmd_command;
command_fn cmd_command_count;
command_fn cmd_command_docs;
command_fn cmd_command_getkeys;
command_fn cmd_command_getkeysandflags;
command_fn cmd_command_help;
command_fn cmd_command_info;
command_fn cmd_command_list;
command_fn cmd_config_get;
command_fn cmd_config_help;
command_fn cmd_config_resetstat;
command_fn cmd_config_rewrite;
command_fn cmd_config_set;
command_fn cmd_info;
command_fn cmd_shutdown;
command_fn cmd_time;

#endif
