/*
 * Which state of a transaction may follow which; see the diagram in txn_state.h.
 */
#include "storage/txn/txn_state.h"

#define TO(state) (1u << TXN_##state)

const uint16_t txn_state_next[TXN_STATES] = {
    [TXN_FREE] = TO(RUNNING) | TO(QUEUED) | TO(ENLISTED),
    [TXN_ENLISTED] = TO(SUMMONED) | TO(FREE),
    [TXN_SUMMONED] = TO(RUNNING) | TO(QUEUED),
    [TXN_QUEUED] = TO(READY),
    [TXN_READY] = TO(RUNNING),
    [TXN_RUNNING] = TO(PAUSED) | TO(PARKED) | TO(RESTING) | TO(FREE),
    [TXN_PAUSED] = TO(RUNNING),
    [TXN_PARKED] = TO(READY),
    [TXN_RESTING] = TO(READY),
};
