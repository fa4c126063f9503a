/*
 * Each thread has clients of its own and serves them as they become ready; by RDMA it polls them
 * busily for a while before it sleeps.
 *
 * Invariants:
 * 1. A client has at most `pipeline` operations under way, each with one command outstanding:
 *    replies come in the order of the ring.
 * 2. Closed loop: a client begins `pipeline` operations when all of its last ones are over; a
 *    latency runs from there. Open loop: operations are due at even intervals, whether others are
 *    over or not; a latency runs from when its operation was due, not from when it could be sent.
 * 3. `left` operations are still to begin, `busy` have begun and are not over.
 */
#include "benchmarks/bench_run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define STALL_NS 60000000000
#define EVENTS 128

enum step { STEP_COMMAND, STEP_READ, STEP_SCAN, STEP_UPDATE, STEP_INSERT, STEP_CHANGE };

struct operation {
    int64_t since_ns;
    uint64_t key;
    uint32_t length; /* of a scan: keys */
    enum step step;
};

struct client {
    struct vellum *vellum;
    struct vellum_memory *value, *room; /* by reference: what is SET, where what is read comes to */
    char *room_bytes;
    struct operation *ring;
    uint32_t first, count;
    bool is_stirred; /* has been active since it last slept */
    bool writes;     /* watched for room as well */
};

struct thread {
    const struct bench_run *run;
    pthread_t id;
    struct client *clients;
    uint32_t client_count, turn;
    int epoll;
    struct bench_command command, read, update;
    struct bench_command scans[BENCH_SCAN_MOST]; /* by length, from 1 */
    struct keys keys;
    uint64_t number; /* counted up */
    uint64_t left, busy, begun;
    int64_t start_ns, deadline_ns, moved_ns;
    int64_t offset_ns; /* open loop: threads take turns */
    double interval_ns;
    struct bench_result result;
};

struct bench_team {
    uint32_t count;
    struct thread threads[];
};

/* ---- commands ---- */

static uint64_t next_number(struct thread *thread)
{
    return thread->run->counts_up ? thread->number++ : keys_next(&thread->keys);
}

static int append_command(const struct thread *thread, struct client *client,
                          const struct bench_command *command)
{
    const char *key = command->bytes + command->key_at;
    bool writes = command->value_length > 0, reads = command->key_length > 0 && !writes;
    if (client->value != NULL && writes)
        return vellum_append_set_from(client->vellum, key, command->key_length, client->value, 0,
                                      command->value_length);
    if (client->room != NULL && reads)
        return vellum_append_get_into(client->vellum, key, command->key_length, client->room, 0,
                                      (size_t)thread->run->wanted_length);
    return vellum_append_formatted(client->vellum, command->bytes, command->length);
}

static void append(struct thread *thread, struct client *client, struct bench_command *command)
{
    if (append_command(thread, client, command) != REDIS_OK)
        bench_give_up("%s", vellum_error(client->vellum));
    client->is_stirred = true;
    thread->result.commands++;
}

static void append_with_key(struct thread *thread, struct client *client,
                            struct bench_command *command, uint64_t key)
{
    for (uint32_t i = 0; i < command->places; i++)
        keys_digits(command->bytes + command->at[i], key);
    append(thread, client, command);
}

/* False: too many are in flight. */
static bool take_insert(struct bench_inserts *inserts, uint64_t *key)
{
    pthread_mutex_lock(&inserts->lock);
    bool has_room = inserts->next - inserts->there < BENCH_INSERTS_WINDOW;
    *key = inserts->next;
    inserts->next += has_room;
    pthread_mutex_unlock(&inserts->lock);
    return has_room;
}

static void insert_is_done(struct bench_inserts *inserts, uint64_t key)
{
    pthread_mutex_lock(&inserts->lock);
    inserts->is_done[key % BENCH_INSERTS_WINDOW] = true;
    while (inserts->is_done[inserts->there % BENCH_INSERTS_WINDOW])
        inserts->is_done[inserts->there++ % BENCH_INSERTS_WINDOW] = false;
    pthread_mutex_unlock(&inserts->lock);
}

static uint64_t latest_key(struct thread *thread)
{
    struct bench_inserts *inserts = thread->run->inserts;
    pthread_mutex_lock(&inserts->lock);
    uint64_t there = inserts->there;
    pthread_mutex_unlock(&inserts->lock);
    return keys_latest(&thread->keys, there - 1);
}

static struct operation choose(struct thread *thread)
{
    const struct bench_mix *mix = thread->run->mix;
    struct operation operation = {.step = STEP_READ};
    uint64_t dice = keys_random(&thread->keys) % 100;
    if (dice < mix->inserts && take_insert(thread->run->inserts, &operation.key)) {
        operation.step = STEP_INSERT;
        return operation;
    }
    if (dice < mix->updates)
        operation.step = STEP_UPDATE;
    else if (dice < mix->changes)
        operation.step = STEP_CHANGE;
    else if (mix->scans)
        operation.step = STEP_SCAN;
    if (mix->scans)
        operation.length = 1 + (uint32_t)(keys_random(&thread->keys) % BENCH_SCAN_MOST);
    operation.key = mix->reads_latest ? latest_key(thread) : keys_next(&thread->keys);
    return operation;
}

/* ---- operations ---- */

static struct bench_command *command_of(struct thread *thread, const struct operation *operation)
{
    switch (operation->step) {
    case STEP_UPDATE:
    case STEP_INSERT:
        return &thread->update;
    case STEP_SCAN:
        return &thread->scans[operation->length - 1];
    default:
        return &thread->read;
    }
}

static void begin(struct thread *thread, struct client *client, int64_t since_ns)
{
    struct operation operation = {.step = STEP_COMMAND};
    if (thread->run->mix != NULL) {
        operation = choose(thread);
        append_with_key(thread, client, command_of(thread, &operation), operation.key);
    } else {
        for (uint32_t i = 0; i < thread->command.places; i++)
            keys_digits(thread->command.bytes + thread->command.at[i], next_number(thread));
        append(thread, client, &thread->command);
    }
    operation.since_ns = since_ns;
    client->ring[(client->first + client->count++) % thread->run->pipeline] = operation;
    thread->left--;
    thread->busy++;
}

static void begin_batch(struct thread *thread, struct client *client, int64_t now_ns)
{
    if (now_ns >= thread->deadline_ns)
        thread->left = 0;
    while (client->count < thread->run->pipeline && thread->left > 0)
        begin(thread, client, now_ns);
}

/* Keys and values in turn; fewer than asked for at the end of the key space. */
static bool is_odd_scan(const struct bench_run *run, uint32_t length, const redisReply *reply)
{
    bool is_odd = reply->type != REDIS_REPLY_ARRAY || reply->elements % 2 != 0 ||
                  reply->elements > 2 * (size_t)length;
    for (size_t i = 1; !is_odd && i < reply->elements; i += 2)
        is_odd = run->wanted_length >= 0 && reply->element[i]->len != (size_t)run->wanted_length;
    return is_odd;
}

static void judge(struct thread *thread, const struct operation *operation, const redisReply *reply)
{
    const struct bench_run *run = thread->run;
    enum step step = operation->step;
    bool is_array = reply->type == REDIS_REPLY_ARRAY;
    int64_t length = reply->type == REDIS_REPLY_INTEGER ? reply->integer : (int64_t)reply->len;
    bool reads = step == STEP_COMMAND || step == STEP_READ || step == STEP_CHANGE;
    if (reply->type == REDIS_REPLY_ERROR)
        bench_give_up("the server says: %s", reply->str);
    if (reply->type == REDIS_REPLY_NIL || (is_array && reply->elements == 0))
        thread->result.absent++;
    else if (step == STEP_SCAN)
        thread->result.odd += is_odd_scan(run, operation->length, reply);
    else if ((is_array && run->wanted_elements >= 0 &&
              reply->elements != (size_t)run->wanted_elements) ||
             (!is_array && reads && run->wanted_length >= 0 && length != run->wanted_length))
        thread->result.odd++;
}

static void end(struct thread *thread, struct client *client, const redisReply *reply)
{
    if (client->count == 0)
        bench_give_up("the server has said more than it was asked");
    struct operation operation = client->ring[client->first];
    client->first = (client->first + 1) % thread->run->pipeline;
    client->count--;
    judge(thread, &operation, reply);
    if (operation.step == STEP_CHANGE) {
        append_with_key(thread, client, &thread->update, operation.key);
        operation.step = STEP_UPDATE;
        client->ring[(client->first + client->count++) % thread->run->pipeline] = operation;
        return;
    }
    if (operation.step == STEP_INSERT)
        insert_is_done(thread->run->inserts, operation.key);
    thread->busy--;
    thread->result.operations++;
    histogram_add(&thread->result.latencies, (uint64_t)(thread->moved_ns - operation.since_ns), 1);
    if (client->count == 0 && thread->run->rate == 0)
        begin_batch(thread, client, thread->moved_ns);
}

/* Sends and receives what is possible now. */
static bool serve(struct thread *thread, struct client *client)
{
    bool has_moved = false;
    for (;;) {
        redisReply *reply;
        if (vellum_try(client->vellum, &reply) != REDIS_OK)
            bench_give_up("%s", vellum_error(client->vellum));
        if (reply == NULL)
            break;
        thread->moved_ns = bench_now_ns();
        end(thread, client, reply);
        freeReplyObject(reply);
        has_moved = true;
    }
    client->is_stirred = true;
    return has_moved;
}

/* ---- open loop ---- */

static int64_t due_ns(const struct thread *thread)
{
    return thread->start_ns + (int64_t)(thread->interval_ns * (double)thread->begun);
}

static struct client *find_free(struct thread *thread)
{
    for (uint32_t i = 0; i < thread->client_count; i++) {
        struct client *client = &thread->clients[thread->turn];
        thread->turn = (thread->turn + 1) % thread->client_count;
        if (client->count < thread->run->pipeline)
            return client;
    }
    return NULL;
}

/* Begins the operations that are due, as far as clients are free. Returns when the next one is due:
 * INT64_MAX if a reply has to arrive first. */
static int64_t begin_due(struct thread *thread)
{
    int64_t due;
    while (thread->left > 0 && (due = due_ns(thread)) <= bench_now_ns()) {
        struct client *client = find_free(thread);
        if (client == NULL)
            return INT64_MAX;
        begin(thread, client, due);
        thread->begun++;
        serve(thread, client);
    }
    return thread->left > 0 ? due_ns(thread) : INT64_MAX;
}

/* ---- waiting ---- */

static void watch(struct thread *thread, struct client *client, int descriptor, int how,
                  uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = client};
    if (epoll_ctl(thread->epoll, how, descriptor, &event) != 0)
        bench_give_up("epoll: %s", strerror(errno));
}

/* False: there is work to do. */
static bool put_to_sleep(struct thread *thread, struct client *client)
{
    struct vellum_wait wait;
    if (!client->is_stirred)
        return true;
    if (!vellum_sleep(client->vellum, &wait))
        return false;
    if (wait.writes != client->writes)
        watch(thread, client, wait.descriptor, EPOLL_CTL_MOD,
              EPOLLIN | (wait.writes ? EPOLLOUT : 0u));
    client->writes = wait.writes;
    client->is_stirred = false;
    return true;
}

static bool serve_all(struct thread *thread)
{
    bool has_moved = false;
    for (uint32_t i = 0; i < thread->client_count; i++)
        has_moved = serve(thread, &thread->clients[i]) || has_moved;
    return has_moved;
}

static void sleep_until(struct thread *thread, int64_t until_ns)
{
    struct epoll_event events[EVENTS];
    bool sleeps = true;
    for (uint32_t i = 0; i < thread->client_count; i++)
        sleeps = put_to_sleep(thread, &thread->clients[i]) && sleeps;
    int64_t now_ns = bench_now_ns(), wait_ns = until_ns == INT64_MAX ? STALL_NS : until_ns - now_ns;
    if (!sleeps || wait_ns < 0)
        wait_ns = 0;
    struct timespec limit = {.tv_sec = wait_ns / 1000000000, .tv_nsec = wait_ns % 1000000000};
    int got = epoll_pwait2(thread->epoll, events, EVENTS, &limit, NULL);
    if (got < 0 && errno != EINTR)
        bench_give_up("epoll: %s", strerror(errno));
    for (int i = 0; i < got; i++)
        serve(thread, events[i].data.ptr);
    if (!sleeps)
        serve_all(thread);
    if (got == 0 && sleeps && until_ns == INT64_MAX)
        bench_give_up("the server has not answered for a minute");
}

static void *work(void *argument)
{
    struct thread *thread = argument;
    const struct bench_run *run = thread->run;
    int64_t spin_ns = run->transport->is_rdma ? (int64_t)run->options->spin_us * 1000 : 0;
    prctl(PR_SET_TIMERSLACK, 1000ul);
    thread->moved_ns = bench_now_ns();
    thread->start_ns = thread->moved_ns + thread->offset_ns;
    if (run->seconds > 0 && run->rate == 0)
        thread->deadline_ns = thread->start_ns + (int64_t)(run->seconds * 1e9);
    for (uint32_t i = 0; i < thread->client_count && run->rate == 0; i++) {
        begin_batch(thread, &thread->clients[i], bench_now_ns());
        serve(thread, &thread->clients[i]);
    }
    while (thread->left > 0 || thread->busy > 0) {
        int64_t next_ns = run->rate > 0 ? begin_due(thread) : INT64_MAX;
        bool spins = bench_now_ns() - thread->moved_ns < spin_ns;
        if (thread->busy > 0 && spins)
            serve_all(thread);
        else if (thread->left > 0 || thread->busy > 0)
            sleep_until(thread, next_ns);
    }
    return NULL;
}

/* ---- beginning and end ---- */

static struct vellum_memory *pin(struct client *client, char *bytes, size_t size)
{
    struct vellum_memory *memory = vellum_register(client->vellum, bytes, size);
    if (memory == NULL)
        bench_give_up("%s (see ulimit -l)", vellum_error(client->vellum));
    return memory;
}

static void register_values(struct thread *thread, struct client *client)
{
    const struct bench_run *run = thread->run;
    struct bench_command *command = run->mix != NULL ? &thread->update : &thread->command;
    if (!run->transport->by_reference)
        return;
    if (command->value_length > 0)
        client->value = pin(client, command->bytes + command->value_at, command->value_length);
    if (run->wanted_length <= 0)
        return;
    client->room_bytes = malloc((size_t)run->wanted_length);
    if (client->room_bytes == NULL)
        bench_give_up("out of memory");
    client->room = pin(client, client->room_bytes, (size_t)run->wanted_length);
}

static void make_client(struct thread *thread, struct client *client)
{
    const struct bench_run *run = thread->run;
    struct vellum_wait wait;
    client->vellum = bench_connect(run->options, run->transport);
    register_values(thread, client);
    client->ring = calloc(run->pipeline, sizeof *client->ring);
    if (client->ring == NULL)
        bench_give_up("out of memory");
    client->is_stirred = true;
    vellum_sleep(client->vellum, &wait);
    watch(thread, client, wait.descriptor, EPOLL_CTL_ADD, EPOLLIN);
    if (wait.channel >= 0)
        watch(thread, client, wait.channel, EPOLL_CTL_ADD, EPOLLIN);
}

static uint64_t share(uint64_t all, uint32_t threads, uint32_t index)
{
    return all / threads + (index < all % threads);
}

static uint64_t requests_of(const struct bench_run *run)
{
    if (run->requests > 0)
        return run->requests;
    return run->rate > 0 ? (uint64_t)(run->rate * run->seconds) + 1 : UINT64_MAX;
}

static void make_scans(struct thread *thread)
{
    for (uint32_t i = 0; i < BENCH_SCAN_MOST; i++) {
        char text[sizeof BENCH_SCAN + 16];
        snprintf(text, sizeof text, BENCH_SCAN, i + 1);
        bench_command_make(&thread->scans[i], text, 0, true);
    }
}

static void make_thread(struct thread *thread, const struct bench_run *run, uint32_t index)
{
    uint64_t requests = requests_of(run);
    thread->run = run;
    thread->epoll = epoll_create1(EPOLL_CLOEXEC);
    thread->client_count = (uint32_t)share(run->clients, run->threads, index);
    thread->clients = calloc(thread->client_count, sizeof *thread->clients);
    if (thread->clients == NULL || thread->epoll < 0)
        bench_give_up("out of memory or descriptors");
    thread->left = requests == UINT64_MAX ? requests : share(requests, run->threads, index);
    thread->deadline_ns = INT64_MAX;
    if (run->rate > 0) {
        thread->interval_ns = 1e9 * run->threads / run->rate;
        thread->offset_ns = (int64_t)(1e9 * index / run->rate);
    }
    thread->keys = run->keys;
    keys_seed(&thread->keys, run->seed * BENCH_THREADS_MAX + index);
    if (run->mix == NULL) {
        bench_command_copy(&thread->command, &run->command);
    } else {
        bench_command_copy(&thread->read, &run->read);
        bench_command_copy(&thread->update, &run->update);
        if (run->mix->scans)
            make_scans(thread);
    }
    for (uint32_t i = 0; i < thread->client_count; i++)
        make_client(thread, &thread->clients[i]);
}

void bench_result_add(struct bench_result *result, const struct bench_result *part)
{
    histogram_merge(&result->latencies, &part->latencies);
    result->operations += part->operations;
    result->commands += part->commands;
    result->absent += part->absent;
    result->odd += part->odd;
    result->seconds += part->seconds;
    result->client_cpu_s += part->client_cpu_s;
}

static void free_thread(struct thread *thread)
{
    for (uint32_t i = 0; i < thread->client_count; i++) {
        vellum_unregister(thread->clients[i].value);
        vellum_unregister(thread->clients[i].room);
        vellum_free(thread->clients[i].vellum);
        free(thread->clients[i].ring);
        free(thread->clients[i].room_bytes);
    }
    free(thread->clients);
    bench_command_free(&thread->command);
    bench_command_free(&thread->read);
    bench_command_free(&thread->update);
    for (uint32_t i = 0; i < BENCH_SCAN_MOST; i++)
        bench_command_free(&thread->scans[i]);
    close(thread->epoll);
}

struct bench_team *bench_team_gather(const struct bench_run *run)
{
    struct bench_team *team = calloc(1, sizeof *team + run->threads * sizeof *team->threads);
    if (team == NULL)
        bench_give_up("out of memory");
    team->count = run->threads;
    for (uint32_t i = 0; i < team->count; i++)
        make_thread(&team->threads[i], run, i);
    return team;
}

void bench_team_run(struct bench_team *team, struct bench_result *result)
{
    double cpu_s = bench_cpu_seconds();
    int64_t start_ns = bench_now_ns();
    memset(result, 0, sizeof *result);
    for (uint32_t i = 0; i < team->count; i++)
        if (pthread_create(&team->threads[i].id, NULL, work, &team->threads[i]) != 0)
            bench_give_up("no thread can be made");
    for (uint32_t i = 0; i < team->count; i++)
        pthread_join(team->threads[i].id, NULL);
    for (uint32_t i = 0; i < team->count; i++)
        bench_result_add(result, &team->threads[i].result);
    result->seconds = (double)(bench_now_ns() - start_ns) / 1e9;
    result->client_cpu_s = bench_cpu_seconds() - cpu_s;
}

void bench_team_free(struct bench_team *team)
{
    for (uint32_t i = 0; i < team->count; i++)
        free_thread(&team->threads[i]);
    free(team);
}
