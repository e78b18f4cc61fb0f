/* SPDX-License-Identifier: MIT */
/* What the CUDA back end tells people about the driver and the toolkit it uses. */
#include "backend/cuda/cuda_report.h"
#include "backend/cuda/cuda_driver.h"
#include "backend/cuda/cuda_toolkit.h"
#include "base/strbuf.h"
#include <stdlib.h>

enum { REPORT_LIMIT = 65536 };

static void report_put(dj_report_fn visit, void *user, const char *what, bool missing,
                       dj__strbuf *text)
{
    visit(user, what, missing, dj__strbuf_str(text));
    dj__strbuf_clear(text);
}

void dj__cuda_report_driver(dj_driver *driver, dj_report_fn visit, void *user)
{
    const dj__cuda_library *library = &driver->library;
    dj__strbuf text;
    dj__strbuf_init(&text, REPORT_LIMIT);
    dj__strbuf_puts(&text, library->name);
    if (library->version > 0) {
        dj__strbuf_printf(&text, ", supports CUDA %d.%d", DJ__CUDA_VERSION(library->version));
    }
    report_put(visit, user, "driver", false, &text);
    dj__strbuf_fini(&text);
}

void dj__cuda_report_toolkit(const dj__env *env, dj_report_fn visit, void *user)
{
    dj__cuda_toolkit toolkit;
    if (dj__cuda_toolkit_find(env, &toolkit, NULL) != DJ_OK) {
        return;
    }
    dj__strbuf text;
    dj__strbuf_init(&text, REPORT_LIMIT);
    dj__strbuf_printf(&text, "%s (from %s)", toolkit.nvcc, toolkit.nvcc_source);
    report_put(visit, user, "nvcc", false, &text);
    dj__strbuf_printf(&text, "%s (from %s)", toolkit.host, toolkit.host_source);
    report_put(visit, user, "host compiler", false, &text);
    char *tool = dj__cuda_toolkit_program(env, &toolkit, "cuobjdump");
    if (tool != NULL) {
        dj__strbuf_puts(&text, tool);
    } else {
        dj__strbuf_printf(&text,
                          "not in %s or PATH; needed for kernel.sass only (dump_asm, dump_sass), "
                          "in pip's nvidia-cuda-cuobjdump",
                          toolkit.bin);
    }
    report_put(visit, user, "cuobjdump", tool == NULL, &text);
    free(tool);
    dj__strbuf_fini(&text);
    dj__cuda_toolkit_fini(&toolkit);
}
