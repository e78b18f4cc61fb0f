/* SPDX-License-Identifier: MIT */
/*
 * Publication: seal the staged files, rename the directory to its final name.
 *
 * rename(2) of a directory is the whole arbitration: it works onto an absent name and onto an
 * empty directory, fails onto a published one, and shows nothing halfway. Nothing is ever removed
 * to make room except what was read and found damaged. Whatever goes wrong, the caller keeps a
 * usable build: the bytes were read before the first step.
 */
#include "cache/publish.h"

#include "base/error.h"
#include "base/fs.h"
#include "cache/staged.h"
#include "cache/trash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef enum publish_outcome {
    PUBLISH_DONE,    /* ours is in place */
    PUBLISH_ADOPTED, /* another writer's is, verified, in `winner` */
    PUBLISH_FAILED   /* the error says why; ours still lies in staging */
} publish_outcome;

/* One publication. */
typedef struct publish_job {
    dj__root *root;
    const char *staging;
    const char *name;
    int dir;          /* staging */
    dj__view *staged; /* what is being published */
    dj__view winner;  /* filled for ADOPTED */
    int fd;           /* root */
    int entries;
} publish_job;

static publish_outcome publish_errno(const publish_job *job, int error, const char *what,
                                     dj_error *err)
{
    (void)dj__fail_errno(err, error,
                         "cannot publish %s/" DJ__DIR_ENTRIES
                         "/%s (set %s to a directory that can be written): %s",
                         job->root->path, job->name, job->root->shared->setting, what);
    return PUBLISH_FAILED;
}

static int publish_seal_file(const publish_job *job, const struct stat *root, const char *name)
{
    const int fd = openat(job->dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        return errno;
    }
    int error = dj__root_share(fd, root, root->st_mode & 0666);
    if (error == 0 && job->root->shared->fsync != DJ__FSYNC_NONE && fsync(fd) != 0) {
        error = errno;
    }
    const int close_error = dj__close(fd);
    return error != 0 ? error : close_error;
}

/* Makes the staging directory what an entry is. The marker comes last. */
static int publish_seal(const publish_job *job)
{
    struct stat root;
    if (fstat(job->fd, &root) != 0) {
        return errno;
    }
    const dj__marker *marker = &job->staged->marker;
    int error = 0;
    for (size_t i = 0; i < marker->num_files && error == 0; i++) {
        error = publish_seal_file(job, &root, marker->files[i].name);
    }
    if (error == 0) {
        error = dj__write_new_at(job->dir, DJ__MARKER_NAME, job->staged->text,
                                 job->staged->text_size, 0600, false);
    }
    if (error == 0) {
        error = publish_seal_file(job, &root, DJ__MARKER_NAME);
    }
    if (error == 0) {
        error = dj__root_share(job->dir, &root, root.st_mode & 07777);
    }
    if (error == 0 && job->root->shared->fsync == DJ__FSYNC_FULL) {
        error = dj__fsync_dir(job->dir);
    }
    return error;
}

/* Something lies at the final name, or the rename failed for another reason and may have worked
 * all the same (a lost reply). *again: the name may be free now. */
static publish_outcome publish_look_again(publish_job *job, int error, bool last, bool *again,
                                          dj_error *err)
{
    const bool taken = error == ENOTEMPTY || error == EEXIST;
    dj__view *found = &job->winner;
    dj__entry_look(job->entries, job->name, job->root->shared->loose, DJ__DEPTH_ALL, found);
    *again = false;
    switch (found->look) {
    case DJ__LOOK_GOOD:
        if (!taken && found->text_size == job->staged->text_size &&
            memcmp(found->text, job->staged->text, found->text_size) == 0) {
            return PUBLISH_DONE;
        }
        return PUBLISH_ADOPTED;
    case DJ__LOOK_UNMARKED:
    case DJ__LOOK_DAMAGED:
        if (taken && !last) {
            const int heal = dj__trash_heal(job->root, job->fd, job->entries, job->name, found);
            *again = heal == 0 || heal == ESTALE;
        }
        break;
    case DJ__LOOK_ABSENT:
        *again = taken && !last;
        break;
    case DJ__LOOK_FOREIGN:
    case DJ__LOOK_ERROR:
        break;
    }
    if (*again) {
        return PUBLISH_FAILED;
    }
    return publish_errno(job, error, found->look == DJ__LOOK_ABSENT ? "rename" : found->problem,
                         err);
}

static publish_outcome publish_rename(publish_job *job, dj_error *err)
{
    publish_outcome outcome = PUBLISH_FAILED;
    bool again = true;
    for (int attempt = 0; again; attempt++) {
        const int error = dj__rename_at(AT_FDCWD, job->staging, job->entries, job->name);
        if (error == 0) {
            return PUBLISH_DONE;
        }
        outcome = publish_look_again(job, error, attempt > 0, &again, err);
        if (outcome != PUBLISH_ADOPTED) {
            dj__view_fini(&job->winner);
        }
    }
    return outcome;
}

static publish_outcome publish_try(publish_job *job, dj_error *err)
{
    if (dj__root_open_both(job->root, DJ__DIR_ENTRIES, true, &job->fd, &job->entries, err) !=
        DJ_OK) {
        return PUBLISH_FAILED;
    }
    const int error = publish_seal(job);
    const publish_outcome outcome =
        error != 0 ? publish_errno(job, error, "sealing the files", err) : publish_rename(job, err);
    if (outcome == PUBLISH_DONE && job->root->shared->fsync == DJ__FSYNC_FULL) {
        (void)dj__fsync_dir(job->entries); /* it is visible; durability is all that could lack */
    }
    if (outcome == PUBLISH_FAILED) {
        (void)unlinkat(job->dir, DJ__MARKER_NAME, 0);
        (void)fchmod(job->dir, 0700);
    }
    dj__root_close(job->fd, job->entries);
    return outcome;
}

static uint64_t publish_bytes(const dj__view *view)
{
    uint64_t bytes = view->text_size;
    for (size_t i = 0; i < view->marker.num_files; i++) {
        bytes += view->marker.files[i].size;
    }
    return bytes;
}

dj_status dj__publish(dj__root *root, dj_staging *staging, const dj_manifest *what, dj_entry *out,
                      dj_error *err)
{
    char name[DJ__ENTRY_NAME_SIZE];
    dj__view staged = {.look = DJ__LOOK_GOOD};
    dj_error why = DJ_ERROR_INIT;
    dj__store_counters *counters = root->shared->counters;
    publish_job job = {.root = root,
                       .staging = staging->path,
                       .name = name,
                       .dir = -1,
                       .staged = &staged,
                       .fd = -1,
                       .entries = -1};
    memset(out, 0, sizeof(*out));
    char *path = NULL;
    dj_status status = dj__entry_name(what, name, err);
    if (status == DJ_OK) {
        status = dj__staged_look(staging->path, what, &job.dir, &staged, err);
    }
    if (status != DJ_OK) {
        goto out;
    }
    path = dj__root_path(root, DJ__DIR_ENTRIES, name);
    if (path == NULL) {
        status = dj__fail_memory(err);
        goto out;
    }
    switch (publish_try(&job, &why)) {
    case PUBLISH_DONE:
        atomic_fetch_add_explicit(&counters->bytes_written, publish_bytes(&staged),
                                  memory_order_relaxed);
        status = dj__view_take(&staged, &path, out, err);
        break;
    case PUBLISH_ADOPTED:
        atomic_fetch_add_explicit(&counters->lost_races, 1, memory_order_relaxed);
        status = dj__view_take(&job.winner, &path, out, err);
        out->lost_race = status == DJ_OK;
        break;
    case PUBLISH_FAILED:
        status = dj__staged_keep(root->shared, staging, why.message, &staged, out, err);
        break;
    }
out:
    free(path);
    dj__root_close(job.dir, -1);
    dj__view_fini(&staged);
    dj__view_fini(&job.winner);
    dj__staging_fini(staging); /* whatever is still there is ours to remove */
    return status;
}
