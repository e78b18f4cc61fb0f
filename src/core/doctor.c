/* SPDX-License-Identifier: MIT */
/* dj_doctor: looks for everything a runtime needs and says what it found or where it looked. */
#include "base/error.h"
#include "core/core.h"

typedef struct doctor {
    dj_finding_fn visit;
    void *user;
    dj__strbuf text;
} doctor;

static void doctor_report(doctor *doc, const char *what, bool found)
{
    const dj_finding finding = {what, found, dj__strbuf_str(&doc->text)};
    doc->visit(doc->user, &finding);
    dj__strbuf_clear(&doc->text);
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
    if (!found) {
        dj__strlist recorded;
        dj__strlist_init(&recorded);
        if (dj__runtime_recorded(runtime, &recorded, NULL) == DJ_OK && recorded.count > 0) {
            dj__strbuf_printf(&doc->text, "%zu recorded identities let entries that exist be found",
                              recorded.count);
            doctor_report(doc, "recorded toolchains", true);
        }
        dj__strlist_fini(&recorded);
    }
}

static void doctor_root(void *user, const dj_cache_root *root)
{
    doctor *doc = user;
    dj__strbuf_printf(&doc->text, "%s: %s%s", root->path,
                      root->writable   ? "readable and writable"
                      : root->readable ? "readable"
                                       : "not usable",
                      root->reason[0] != '\0' ? "\n" : "");
    dj__strbuf_puts(&doc->text, root->reason);
    doctor_report(doc, "cache root", root->readable || root->reason[0] == '\0');
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
