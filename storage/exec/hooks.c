#include "storage/exec/hooks.h"

#include "storage/exec/snapshot.h"
#include "storage/exec/reader.h"
#include "storage/exec/upload.h"
#include "storage/exec/prefetch_run.h"

const struct hooks exec_hooks = {
    .page_arrived = prefetch_run_resume,
    .run_discarded = stream_close_all,
    .run_finished = stream_leave_all,
    .oldest_snapshot = snapshot_oldest,
    .set_uploads_apart = upload_set_apart,
    .upload_handed_over = upload_hand_over,
};
