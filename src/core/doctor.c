/* SPDX-License-Identifier: MIT */
/* dj_doctor: looks for everything a runtime needs and says what it found or where it looked. */
#include "base/error.h"
#include "core/core.h"

typedef struct doctor {
    dj_finding_fn visit;
    void *user;
    dj__strbuf text;
    size_t roots; /* visited */
} doctor;

static void doctor_finding(doctor *doc, const char *what, bool found, bool needed)
{
    const dj_finding finding = {what, found, dj__strbuf_str(&doc->text), needed};
    doc->visit(doc->user, &finding);
    dj__strbuf_clear(&doc->text);
}

static void doctor_report(doctor *doc, const char *what, bool found)
{
    doctor_finding(doc, what, found, true);
}

/* What a back end tells of itself is never needed: what is, is found by others. */
static void doctor_fact(void *user, const char *what, bool missing, const char *detail)
{
    doctor *doc = user;
    dj__strbuf_puts(&doc->text, detail);
    doctor_finding(doc, what, !missing, false);
}

static void doctor_device(dj_runtime *runtime, doctor *doc)
{
    dj_device device = DJ_DEVICE_INIT;
    dj_error error = DJ_ERROR_INIT;
    const bool found = dj_device_info(runtime, &device, &error) == DJ_OK;
    if (found) {
        dj__strbuf_printf(&doc->text, "%s, %s, %u compute units", device.name, device.arch,
                          device.compute_units);
    } else {
        dj__strbuf_puts(&doc->text, error.message);
    }
    doctor_report(doc, "device", found);
    dj_driver *driver = NULL;
    if (runtime->backend->driver->report != NULL &&
        dj__runtime_driver(runtime, &driver, NULL) == DJ_OK) {
        runtime->backend->driver->report(driver, doctor_fact, doc);
    }
}

static void doctor_compiler(dj_runtime *runtime, doctor *doc)
{
    const dj__toolchain *toolchain = NULL;
    dj_error error = DJ_ERROR_INIT;
    const bool found = dj__runtime_toolchain(runtime, &toolchain, &error) == DJ_OK;
    if (found) {
        dj__strbuf_printf(&doc->text, "%s\n%s\nidentity %s", toolchain->path, toolchain->version,
                          toolchain->identity);
    } else {
        dj__strbuf_puts(&doc->text, error.message);
    }
    doctor_report(doc, "compiler", found);
    dj_compiler *compiler = NULL;
    if (runtime->backend->compiler->report != NULL &&
        dj__runtime_compiler(runtime, &compiler, NULL) == DJ_OK) {
        runtime->backend->compiler->report(compiler, doctor_fact, doc);
    }
    if (!found) {
        dj__strlist recorded;
        dj__strlist_init(&recorded);
        if (dj__runtime_recorded(runtime, &recorded, NULL) == DJ_OK && recorded.count > 0) {
            dj__strbuf_printf(&doc->text, "%zu recorded %s entries that exist be found",
                              recorded.count,
                              recorded.count == 1 ? "identity lets" : "identities let");
            doctor_report(doc, "recorded toolchains", true);
        }
        dj__strlist_fini(&recorded);
    }
}

/* Misses go to the first root; without the others only their entries are missing. */
static void doctor_root(void *user, const dj_cache_root *root)
{
    doctor *doc = user;
    dj__strbuf_printf(&doc->text, "%s: %s%s", root->path,
                      root->writable   ? "readable and writable"
                      : root->readable ? "readable"
                                       : "not usable",
                      root->reason[0] != '\0' ? "\n" : "");
    dj__strbuf_puts(&doc->text, root->reason);
    doctor_finding(doc, "cache root", root->readable || root->reason[0] == '\0', doc->roots == 0);
    doc->roots++;
}

dj_status dj_doctor(dj_runtime *runtime, dj_finding_fn visit, void *user, dj_error *err)
{
    if (runtime == NULL || visit == NULL) {
        return dj__fail(err, DJ_INVALID_ARGUMENT, "%s must not be NULL",
                        runtime == NULL ? "runtime" : "visit");
    }
    doctor doc = {.visit = visit, .user = user};
    dj__strbuf_init(&doc.text, 65536);
    dj__strbuf_printf(&doc.text, "%s", runtime->backend->name);
    doctor_report(&doc, "back end", true);
    doctor_device(runtime, &doc);
    doctor_compiler(runtime, &doc);
    const dj_status status = dj_store_roots(runtime->store, doctor_root, &doc, err);
    dj__strbuf_fini(&doc.text);
    return status;
}
