/* SPDX-License-Identifier: MIT */
/*
 * The cubin reader. A cubin is an ELF file: a kernel is a function symbol marked as an entry, alone
 * in its .text section. What is known of it lies in other sections that name that section in
 * sh_info: .nv.info.<kernel> holds records of attributes, .nv.shared.<kernel> has the size of its
 * shared memory. The section .nv.info holds records that name the kernel's symbol.
 *
 * Every number is taken for hostile. Each piece that is read is first paid for from a budget of the
 * file's size, so that sections which overlap cannot cost more than the file itself.
 */
#include "backend/cuda/cubin.h"

#include "base/error.h"
#include <stdlib.h>
#include <string.h>

enum {
    CUBIN_HEADER = 64,
    CUBIN_SECTION = 64, /* size of a section header */
    CUBIN_SYMBOL = 24,
    CUBIN_MACHINE = 190,
    CUBIN_OSABI_OLD = 0x33,          /* the architecture is in bits 0-7 of e_flags */
    CUBIN_OSABI_NEW = 0x41,          /* in bits 8-15 */
    CUBIN_FLAG_OLD_SPECIFIC = 0x800, /* runs on this architecture only: suffix a */
    CUBIN_FLAG_NEW_SPECIFIC = 0x8,   /* the same; set by toolkits before 13 */
    CUBIN_RELOCATABLE = 1,
    CUBIN_EXECUTABLE = 2,
    CUBIN_SECTION_LIMIT = 0xff00, /* more need another numbering */
    CUBIN_ENTRY = 0x10,           /* in st_other */
    CUBIN_FUNCTION = 2,
    CUBIN_PARAM_LIMIT = 32764,   /* bytes of the largest parameter block */
    CUBIN_SHARED_RESERVE = 1024, /* which the system takes of each block's, from 90 on */
    CUBIN_ALIGN_LIMIT = 64,
};

enum {
    CUBIN_PROGBITS = 1,
    CUBIN_SYMTAB = 2,
    CUBIN_STRTAB = 3,
    CUBIN_NOTE = 7,
    CUBIN_NOBITS = 8,
    CUBIN_INFO = 0x70000000,
    CUBIN_COMPAT = 0x70000086,
};

enum {
    CUBIN_MAX_THREADS = 0x05,
    CUBIN_PARAM_CBANK = 0x0a,
    CUBIN_REQUIRED_THREADS = 0x10,
    CUBIN_FRAME_SIZE = 0x11,
    CUBIN_MIN_STACK_SIZE = 0x12,
    CUBIN_PARAM = 0x17,
    CUBIN_PARAM_BYTES = 0x19,
    CUBIN_REGISTERS = 0x2f,
    CUBIN_CLUSTER = 0x3d,
    CUBIN_PARAM_LARGE = 0x45, /* of kernels that take more than 4 KiB */
};

typedef struct cubin_piece {
    const uint8_t *data;
    size_t size;
} cubin_piece;

typedef struct cubin_section {
    uint32_t name, type;
    uint64_t offset, size;
    uint32_t link, info;
} cubin_section;

/* What is gathered of a kernel before the memory for its parameters and names is known. */
typedef struct cubin_work {
    dj_kernel_info info;
    size_t symbol;
    size_t name_size; /* with the NUL */
    cubin_piece records;
    uint32_t param_base; /* address of the parameter block in its constant bank */
    int64_t param_bytes; /* of the block; -1: unknown */
    bool described;      /* `records` is set */
} cubin_work;

typedef struct cubin_file {
    const uint8_t *data;
    size_t size;
    size_t budget;
    uint64_t sections; /* offset of their headers */
    size_t num_sections;
    bool relocatable;
    int sm;
    char suffix; /* 'a', 'f', 0 */
    cubin_piece section_names, symbols, names, globals;
    uint32_t *owner; /* of a section: its kernel's number + 1 */
    cubin_work *work;
    size_t num_kernels;
    size_t name_bytes, num_params; /* of all kernels */
    dj_error *err;
} cubin_file;

static inline uint32_t cubin_u16(const uint8_t *at)
{
    return (uint32_t)(at[0] | at[1] << 8);
}

static inline uint32_t cubin_u32(const uint8_t *at)
{
    return cubin_u16(at) | cubin_u16(at + 2) << 16;
}

static inline uint64_t cubin_u64(const uint8_t *at)
{
    return cubin_u32(at) | (uint64_t)cubin_u32(at + 4) << 32;
}

static dj_status cubin_pay(cubin_file *file, size_t size)
{
    if (size > file->budget) {
        return dj__fail(file->err, DJ_INVALID_ARGUMENT, "damaged cubin: its parts overlap");
    }
    file->budget -= size;
    return DJ_OK;
}

/* ---- The file and its sections ---- */

static cubin_section cubin_section_at(const cubin_file *file, size_t index)
{
    const uint8_t *const at = file->data + file->sections + index * CUBIN_SECTION;
    return (cubin_section){
        .name = cubin_u32(at),
        .type = cubin_u32(at + 4),
        .offset = cubin_u64(at + 24),
        .size = cubin_u64(at + 32),
        .link = cubin_u32(at + 40),
        .info = cubin_u32(at + 44),
    };
}

static bool cubin_within(const cubin_file *file, uint64_t offset, uint64_t size)
{
    return offset <= file->size && size <= file->size - offset;
}

static dj_status cubin_content(cubin_file *file, const cubin_section *section, const char *what,
                               cubin_piece *out)
{
    if (!cubin_within(file, section->offset, section->size)) {
        return dj__fail(file->err, DJ_INVALID_ARGUMENT,
                        "damaged or truncated cubin: %s should lie at byte %llu and have %llu "
                        "bytes, the file has %zu",
                        what, (unsigned long long)section->offset,
                        (unsigned long long)section->size, file->size);
    }
    *out = (cubin_piece){file->data + section->offset, (size_t)section->size};
    return cubin_pay(file, out->size);
}

/* Compares the beginning, or with `whole` all, of a section's name. */
static bool cubin_is_named(const cubin_file *file, const cubin_section *section, const char *name,
                           bool whole)
{
    const size_t length = strlen(name) + (whole ? 1 : 0);
    return section->name <= file->section_names.size &&
           length <= file->section_names.size - section->name &&
           memcmp(file->section_names.data + section->name, name, length) == 0;
}

static dj_status cubin_read_target(cubin_file *file)
{
    const unsigned abi = file->data[7];
    const unsigned type = cubin_u16(file->data + 16);
    const uint32_t flags = cubin_u32(file->data + 48);
    if (abi != CUBIN_OSABI_OLD && abi != CUBIN_OSABI_NEW) {
        return dj__fail(file->err, DJ_INVALID_ARGUMENT,
                        "a cubin of an unknown kind (OS ABI 0x%02x; 0x33 and 0x41 are known): it "
                        "was made by a toolkit that this version of DeepJIT does not know",
                        abi);
    }
    if (type != CUBIN_EXECUTABLE && type != CUBIN_RELOCATABLE) {
        return dj__fail(file->err, DJ_INVALID_ARGUMENT, "damaged cubin: ELF type %u", type);
    }
    file->relocatable = type == CUBIN_RELOCATABLE;
    file->sm = (int)((abi == CUBIN_OSABI_OLD ? flags : flags >> 8) & 0xff);
    const uint32_t specific =
        abi == CUBIN_OSABI_OLD ? CUBIN_FLAG_OLD_SPECIFIC : CUBIN_FLAG_NEW_SPECIFIC;
    if ((flags & specific) != 0) {
        file->suffix = 'a';
    }
    return DJ_OK;
}

static dj_status cubin_read_header(cubin_file *file)
{
    const uint8_t *const data = file->data;
    if (file->size < 20 ||
        memcmp(data,
               "\x7f"
               "ELF\2\1",
               6) != 0 ||
        cubin_u16(data + 18) != CUBIN_MACHINE) {
        return dj__cubin_fail_kind(data, file->size, file->err);
    }
    if (file->size < CUBIN_HEADER) {
        return dj__fail(file->err, DJ_INVALID_ARGUMENT,
                        "truncated cubin: its %zu bytes end within the header", file->size);
    }
    const dj_status status = cubin_read_target(file);
    if (status != DJ_OK) {
        return status;
    }
    file->sections = cubin_u64(data + 40);
    file->num_sections = cubin_u16(data + 60);
    const unsigned entry = cubin_u16(data + 58);
    const size_t names = cubin_u16(data + 62);
    if (file->num_sections == 0 || file->num_sections >= CUBIN_SECTION_LIMIT ||
        entry != CUBIN_SECTION || names >= file->num_sections) {
        return dj__fail(file->err, DJ_INVALID_ARGUMENT,
                        "damaged cubin: %zu section headers of %u bytes, names in number %zu",
                        file->num_sections, entry, names);
    }
    const size_t bytes = file->num_sections * CUBIN_SECTION;
    if (!cubin_within(file, file->sections, bytes) ||
        !cubin_within(file, cubin_u64(data + 32),
                      (uint64_t)cubin_u16(data + 54) * cubin_u16(data + 56))) {
        return dj__fail(file->err, DJ_INVALID_ARGUMENT,
                        "truncated cubin: its %zu bytes end before its section and program "
                        "headers do",
                        file->size);
    }
    file->budget = file->size - bytes;
    const cubin_section section = cubin_section_at(file, names);
    return cubin_content(file, &section, "the table of section names", &file->section_names);
}

/* ---- What it was compiled for ---- */

/* The suffix is in no header field of new cubins, but the assembler leaves its command line:
 * "... -arch sm_100f ...". Believed only if the rest agrees. */
static void cubin_read_command(cubin_file *file, const char *text, size_t size)
{
    static const char option[] = "-arch";
    for (size_t at = 0; at + sizeof option + 4 < size; at++) {
        if (memcmp(text + at, option, sizeof option - 1) != 0) {
            continue;
        }
        const char *word = text + at + sizeof option - 1;
        const char *const end = text + size;
        if ((*word != ' ' && *word != '=') || end - word < 6 || memcmp(word + 1, "sm_", 3) != 0) {
            continue;
        }
        int sm = 0;
        for (word += 4; word < end && *word >= '0' && *word <= '9' && sm < 1000; word++) {
            sm = sm * 10 + (*word - '0');
        }
        if (sm == file->sm) {
            file->suffix = word < end && (*word == 'a' || *word == 'f') ? *word : '\0';
        }
        return;
    }
}

/* A note: three sizes, "NVIDIA Corp", then six numbers of which the last is where in the strings
 * behind them the command line begins. */
static void cubin_read_tool(cubin_file *file, cubin_piece note)
{
    enum { OWNER = 12, NUMBERS = 24, TYPE = 2000 };
    if (note.size < 12 + OWNER + NUMBERS || cubin_u32(note.data) != OWNER ||
        cubin_u32(note.data + 8) != TYPE) {
        return;
    }
    const size_t size = cubin_u32(note.data + 4);
    const char *const strings = (const char *)note.data + 12 + OWNER + NUMBERS;
    const uint32_t command = cubin_u32(note.data + 12 + OWNER + NUMBERS - 4);
    if (size >= NUMBERS && size <= note.size - 12 - OWNER && command < size - NUMBERS) {
        const char *const text = strings + command;
        cubin_read_command(file, text, strnlen(text, size - NUMBERS - command));
    }
}

/* Records of two bytes, type and attribute, and a value, of which attribute 9 says 1 for code that
 * runs on this architecture only. */
static void cubin_read_compat(cubin_file *file, cubin_piece records)
{
    if (records.size >= 4 && records.data[0] == 2 && records.data[1] == 9 && records.data[2] == 1 &&
        file->suffix == '\0') {
        file->suffix = 'a';
    }
}

/* ---- Kernels ---- */

static bool cubin_is_kernel(const uint8_t *symbol)
{
    return (symbol[4] & 0xf) == CUBIN_FUNCTION && (symbol[5] & CUBIN_ENTRY) != 0 &&
           cubin_u16(symbol + 6) != 0;
}

static dj_status cubin_find_tables(cubin_file *file)
{
    size_t found = 0;
    for (size_t i = 0; i < file->num_sections; i++) {
        const cubin_section section = cubin_section_at(file, i);
        if (section.type != CUBIN_SYMTAB) {
            continue;
        }
        if (found++ > 0 || section.link >= file->num_sections || section.size % CUBIN_SYMBOL != 0) {
            return dj__fail(file->err, DJ_INVALID_ARGUMENT,
                            "damaged cubin: its symbol table makes no sense");
        }
        const cubin_section names = cubin_section_at(file, section.link);
        dj_status status = cubin_content(file, &section, "the symbol table", &file->symbols);
        if (status == DJ_OK && names.type != CUBIN_STRTAB) {
            status = dj__fail(file->err, DJ_INVALID_ARGUMENT,
                              "damaged cubin: its symbol table has no table of names");
        }
        if (status == DJ_OK) {
            status = cubin_content(file, &names, "the table of symbol names", &file->names);
        }
        if (status != DJ_OK) {
            return status;
        }
    }
    return found > 0
               ? DJ_OK
               : dj__fail(file->err, DJ_INVALID_ARGUMENT, "damaged cubin: it has no symbol table");
}

static dj_status cubin_add_kernel(cubin_file *file, size_t index, cubin_work *work)
{
    const uint8_t *const symbol = file->symbols.data + index * CUBIN_SYMBOL;
    const size_t name = cubin_u32(symbol);
    const size_t text = cubin_u16(symbol + 6);
    const char *problem = NULL;
    size_t length = 0;
    bool ends = false;
    if (text >= file->num_sections) {
        problem = "lies in no section";
    } else if (file->owner[text] != 0) {
        problem = "shares its section with another";
    } else if (name < file->names.size) {
        length = strnlen((const char *)file->names.data + name, file->names.size - name);
        ends = length < file->names.size - name;
    }
    /* Names that share bytes could make more of them than the file has. */
    file->name_bytes += length + 1;
    if (problem == NULL && (length == 0 || !ends || file->name_bytes > file->names.size)) {
        problem = "has no proper name";
    }
    if (problem != NULL) {
        return dj__fail(file->err, DJ_INVALID_ARGUMENT,
                        "damaged cubin: the kernel of symbol %zu %s", index, problem);
    }
    *work = (cubin_work){
        .info = {.name = (const char *)file->names.data + name,
                 .registers = -1,
                 .shared_bytes = file->relocatable ? -1 : 0,
                 .local_bytes = -1},
        .symbol = index,
        .name_size = length + 1,
        .param_bytes = -1,
    };
    /* Older architectures have the number here too. */
    const uint32_t registers = cubin_section_at(file, text).info >> 24;
    if (registers != 0) {
        work->info.registers = registers;
    }
    file->owner[text] = (uint32_t)(work - file->work) + 1;
    return DJ_OK;
}

static dj_status cubin_find_kernels(cubin_file *file)
{
    const size_t num_symbols = file->symbols.size / CUBIN_SYMBOL;
    size_t count = 0;
    for (size_t i = 0; i < num_symbols; i++) {
        count += cubin_is_kernel(file->symbols.data + i * CUBIN_SYMBOL) ? 1 : 0;
    }
    if (count > file->num_sections) {
        return dj__fail(file->err, DJ_INVALID_ARGUMENT,
                        "damaged cubin: %zu kernels in %zu sections", count, file->num_sections);
    }
    file->num_kernels = count;
    file->work = calloc(count + 1, sizeof *file->work);
    file->owner = calloc(file->num_sections + 1, sizeof *file->owner);
    if (file->work == NULL || file->owner == NULL) {
        return dj__fail_memory(file->err);
    }
    dj_status status = DJ_OK;
    cubin_work *work = file->work;
    for (size_t i = 0; i < num_symbols && status == DJ_OK; i++) {
        if (cubin_is_kernel(file->symbols.data + i * CUBIN_SYMBOL)) {
            status = cubin_add_kernel(file, i, work++);
        }
    }
    return status;
}

/* ---- Attributes ---- */

typedef struct cubin_record {
    unsigned attribute;
    uint32_t value; /* of a record without payload */
    cubin_piece payload;
} cubin_record;

/* Takes the next record off `records`. False at the end, and, with `*bad` set, where they make no
 * sense. */
static bool cubin_next_record(cubin_piece *records, cubin_record *out, bool *bad)
{
    enum { NO_VALUE = 1, BYTE = 2, HALF = 3, SIZED = 4 };
    if (records->size == 0) {
        return false;
    }
    const uint8_t *const at = records->data;
    *bad = records->size < 4 || at[0] < NO_VALUE || at[0] > SIZED;
    if (*bad) {
        return false;
    }
    const uint32_t value = cubin_u16(at + 2);
    const size_t size = at[0] == SIZED ? value : 0;
    *bad = size > records->size - 4;
    if (*bad) {
        return false;
    }
    *out = (cubin_record){at[1], at[0] == BYTE ? value & 0xff : value, {at + 4, size}};
    *records = (cubin_piece){at + 4 + size, records->size - 4 - size};
    return true;
}

static dj_status cubin_bad_records(cubin_file *file, const char *kernel)
{
    return dj__fail(file->err, DJ_INVALID_ARGUMENT,
                    "damaged cubin: the attributes of %s%s make no sense",
                    kernel != NULL ? "kernel " : "its symbols", kernel != NULL ? kernel : "");
}

static bool cubin_is_param(const cubin_record *record)
{
    return record->attribute == CUBIN_PARAM || record->attribute == CUBIN_PARAM_LARGE;
}

/* x * y * z; -1 if that makes no sense. */
static int64_t cubin_product(const uint8_t *at)
{
    const uint64_t x = cubin_u32(at);
    const uint64_t y = cubin_u32(at + 4);
    const uint64_t z = cubin_u32(at + 8);
    const uint64_t limit = UINT16_MAX;
    return x > limit || y > limit || z > limit || x * y * z > INT32_MAX ? -1 : (int64_t)(x * y * z);
}

static bool cubin_take_record(cubin_work *work, const cubin_record *record)
{
    const cubin_piece payload = record->payload;
    switch (record->attribute) {
    case CUBIN_MAX_THREADS:
    case CUBIN_REQUIRED_THREADS:
        work->info.max_threads = payload.size == 12 ? cubin_product(payload.data) : -1;
        return work->info.max_threads >= 0;
    case CUBIN_CLUSTER:
        for (size_t i = 0; i < 3 && payload.size == 12; i++) {
            work->info.cluster[i] = cubin_u32(payload.data + 4 * i);
        }
        return payload.size == 12;
    case CUBIN_PARAM_CBANK:
        if (payload.size == 8) {
            work->param_base = cubin_u16(payload.data + 4);
            work->param_bytes = cubin_u16(payload.data + 6);
        }
        return payload.size == 8;
    case CUBIN_PARAM_BYTES:
        work->param_bytes = payload.size == 0 ? (int64_t)record->value : -1;
        return payload.size == 0;
    case CUBIN_PARAM:
    case CUBIN_PARAM_LARGE:
        work->info.num_params++;
        return payload.size == 12 && work->info.num_params <= CUBIN_PARAM_LIMIT;
    default:
        return true;
    }
}

static dj_status cubin_take_records(cubin_file *file, cubin_work *work)
{
    bool bad = false;
    cubin_record record;
    cubin_piece records = work->records;
    while (cubin_next_record(&records, &record, &bad)) {
        if (!cubin_take_record(work, &record)) {
            bad = true;
            break;
        }
    }
    file->num_params += work->info.num_params;
    return bad ? cubin_bad_records(file, work->info.name) : DJ_OK;
}

static cubin_work *cubin_kernel_of_symbol(const cubin_file *file, size_t symbol)
{
    if (symbol >= file->symbols.size / CUBIN_SYMBOL) {
        return NULL;
    }
    const size_t text = cubin_u16(file->symbols.data + symbol * CUBIN_SYMBOL + 6);
    if (text >= file->num_sections || file->owner[text] == 0) {
        return NULL;
    }
    cubin_work *const work = &file->work[file->owner[text] - 1];
    return work->symbol == symbol ? work : NULL;
}

/* The section .nv.info: registers and stack of kernels and of other functions. */
static dj_status cubin_take_globals(cubin_file *file)
{
    bool bad = false;
    cubin_record record;
    cubin_piece records = file->globals;
    while (cubin_next_record(&records, &record, &bad)) {
        if (record.payload.size != 8 ||
            (record.attribute != CUBIN_REGISTERS && record.attribute != CUBIN_FRAME_SIZE &&
             record.attribute != CUBIN_MIN_STACK_SIZE)) {
            continue;
        }
        cubin_work *const work = cubin_kernel_of_symbol(file, cubin_u32(record.payload.data));
        const int64_t value = cubin_u32(record.payload.data + 4);
        if (work == NULL) {
            continue;
        }
        if (record.attribute == CUBIN_REGISTERS) {
            work->info.registers = value;
        } else if (value != UINT32_MAX && value > work->info.local_bytes) {
            /* The frame is the kernel's own; the stack, unless unknown because of a recursion,
             * includes what it calls. */
            work->info.local_bytes = value;
        }
    }
    return bad ? cubin_bad_records(file, NULL) : DJ_OK;
}

static dj_status cubin_take_info(cubin_file *file, const cubin_section *section)
{
    cubin_work *work = NULL;
    if (section->info != 0) {
        if (section->info >= file->num_sections) {
            return dj__fail(file->err, DJ_INVALID_ARGUMENT,
                            "damaged cubin: attributes of section %u of %zu", section->info,
                            file->num_sections);
        }
        if (file->owner[section->info] == 0) {
            return DJ_OK; /* a function's */
        }
        work = &file->work[file->owner[section->info] - 1];
    }
    cubin_piece *const records = work != NULL ? &work->records : &file->globals;
    if (work != NULL ? work->described : file->globals.data != NULL) {
        return dj__fail(file->err, DJ_INVALID_ARGUMENT,
                        "damaged cubin: two sections with the same attributes");
    }
    const dj_status status = cubin_content(file, section, "a section of attributes", records);
    if (status != DJ_OK || work == NULL) {
        return status;
    }
    work->described = true;
    return cubin_take_records(file, work);
}

static void cubin_take_shared(cubin_file *file, const cubin_section *section)
{
    if (section->info == 0 || section->info >= file->num_sections ||
        file->owner[section->info] == 0 || section->size > INT32_MAX ||
        !cubin_is_named(file, section, ".nv.shared.", false)) {
        return;
    }
    int64_t bytes = (int64_t)section->size;
    if (file->sm >= 90 && bytes >= CUBIN_SHARED_RESERVE) {
        bytes -= CUBIN_SHARED_RESERVE;
    }
    file->work[file->owner[section->info] - 1].info.shared_bytes = bytes;
}

static dj_status cubin_take_section(cubin_file *file, size_t index)
{
    const cubin_section section = cubin_section_at(file, index);
    cubin_piece content = {NULL, 0};
    switch (section.type) {
    case CUBIN_INFO:
        return cubin_take_info(file, &section);
    case CUBIN_NOBITS:
        cubin_take_shared(file, &section);
        return DJ_OK;
    case CUBIN_NOTE:
    case CUBIN_COMPAT:
        if (section.type == CUBIN_NOTE &&
            !cubin_is_named(file, &section, ".note.nv.tkinfo", true)) {
            return DJ_OK;
        }
        if (cubin_content(file, &section, "a note", &content) != DJ_OK) {
            return DJ_INVALID_ARGUMENT;
        }
        if (section.type == CUBIN_NOTE) {
            cubin_read_tool(file, content);
        } else {
            cubin_read_compat(file, content);
        }
        return DJ_OK;
    case CUBIN_PROGBITS: /* code and data, for the driver */
        return cubin_within(file, section.offset, section.size)
                   ? DJ_OK
                   : dj__fail(file->err, DJ_INVALID_ARGUMENT,
                              "damaged cubin: section %zu ends behind the end of the file", index);
    default:
        return DJ_OK;
    }
}

/* ---- The result ---- */

static uint32_t cubin_lowest_bit(uint32_t value)
{
    return value & (~value + 1);
}

/* What the assembler wrote, which is nothing in all known cubins; else the largest power of two,
 * at most 64, that divides size and address. */
static uint32_t cubin_align(unsigned logarithm, uint32_t size, uint32_t address)
{
    if (logarithm > 0 && logarithm <= 12) {
        return UINT32_C(1) << logarithm;
    }
    const uint32_t bit = cubin_lowest_bit(size | address | CUBIN_ALIGN_LIMIT);
    return size == 0 ? 1 : bit;
}

static bool cubin_fill_param(const cubin_work *work, const cubin_record *record,
                             dj_param_info *params)
{
    const uint8_t *const at = record->payload.data;
    const size_t ordinal = cubin_u16(at + 4);
    const uint32_t offset = cubin_u16(at + 6);
    const bool large = record->attribute == CUBIN_PARAM_LARGE;
    const uint32_t size = large ? cubin_u16(at + 8) : cubin_u32(at + 8) >> 18;
    if (ordinal >= work->info.num_params || params[ordinal].name != NULL ||
        (work->param_bytes >= 0 && (int64_t)offset + size > work->param_bytes)) {
        return false;
    }
    params[ordinal] = (dj_param_info){
        .name = "",
        .type = "",
        .offset = offset,
        .size = size,
        .align = cubin_align(large ? 0 : at[8], size, work->param_base + offset),
    };
    return true;
}

static dj_status cubin_fill_params(cubin_file *file, const cubin_work *work, dj_param_info *params)
{
    bool bad = false;
    cubin_record record;
    cubin_piece records = work->records;
    while (cubin_next_record(&records, &record, &bad)) {
        if (cubin_is_param(&record) && !cubin_fill_param(work, &record, params)) {
            return dj__fail(file->err, DJ_INVALID_ARGUMENT,
                            "damaged cubin: parameter %u of kernel %s makes no sense",
                            (unsigned)cubin_u16(record.payload.data + 4), work->info.name);
        }
    }
    return DJ_OK;
}

/* True if what is listed fills the parameter block: then nothing was left out. */
static bool cubin_params_fill(const cubin_work *work, const dj_param_info *params)
{
    int64_t end = 0;
    for (size_t i = 0; i < work->info.num_params; i++) {
        const int64_t after = (int64_t)params[i].offset + params[i].size;
        end = after > end ? after : end;
    }
    return end == work->param_bytes;
}

static int cubin_compare(const void *left, const void *right)
{
    return strcmp(((const cubin_work *)left)->info.name, ((const cubin_work *)right)->info.name);
}

/* "90a"; the number is a byte. */
static void cubin_write_arch(const cubin_file *file, char *out)
{
    const int number = file->sm;
    if (number >= 100) {
        *out++ = (char)('0' + number / 100);
    }
    if (number >= 10) {
        *out++ = (char)('0' + number / 10 % 10);
    }
    *out++ = (char)('0' + number % 10);
    *out++ = file->suffix;
    *out = '\0';
}

/* One block: kernels, parameters, names. */
static dj_status cubin_finish(cubin_file *file, dj__cubin *out)
{
    const size_t count = file->num_kernels;
    dj_kernel_info *const kernels =
        calloc(1, count * sizeof *kernels + file->num_params * sizeof(dj_param_info) +
                      file->name_bytes + 1);
    if (kernels == NULL) {
        return dj__fail_memory(file->err);
    }
    out->memory = kernels;
    out->params_known = true;
    dj_param_info *params = (dj_param_info *)(kernels + count);
    char *names = (char *)(params + file->num_params);
    if (count > 1) {
        qsort(file->work, count, sizeof *file->work, cubin_compare);
    }
    for (size_t i = 0; i < count; i++) {
        const cubin_work *const work = &file->work[i];
        if (!work->described || (i > 0 && strcmp(work->info.name, work[-1].info.name) == 0)) {
            return dj__fail(file->err, DJ_INVALID_ARGUMENT, "damaged cubin: %s kernel %s",
                            work->described ? "it has two times the" : "nothing describes",
                            work->info.name);
        }
        const dj_status status = cubin_fill_params(file, work, params);
        if (status != DJ_OK) {
            return status;
        }
        out->params_known = out->params_known && cubin_params_fill(work, params);
        kernels[i] = work->info;
        kernels[i].params = work->info.num_params > 0 ? params : NULL;
        kernels[i].name = memcpy(names, work->info.name, work->name_size);
        params += work->info.num_params;
        names += work->name_size;
    }
    out->info.kernels = count > 0 ? kernels : NULL;
    out->info.num_kernels = count;
    out->sm = file->sm;
    out->relocatable = file->relocatable;
    cubin_write_arch(file, out->info.arch);
    return DJ_OK;
}

dj_status dj__cubin_read(const void *data, size_t size, dj__cubin *out, dj_error *err)
{
    cubin_file file = {.data = data, .size = size, .err = err};
    memset(out, 0, sizeof *out);
    dj_status status = cubin_read_header(&file);
    if (status == DJ_OK) {
        status = cubin_find_tables(&file);
    }
    if (status == DJ_OK) {
        status = cubin_find_kernels(&file);
    }
    for (size_t i = 0; status == DJ_OK && i < file.num_sections; i++) {
        status = cubin_take_section(&file, i);
    }
    if (status == DJ_OK) {
        status = cubin_take_globals(&file);
    }
    if (status == DJ_OK) {
        status = cubin_finish(&file, out);
    }
    free(file.work);
    free(file.owner);
    if (status != DJ_OK) {
        dj__cubin_fini(out);
    }
    return status;
}

void dj__cubin_fini(dj__cubin *cubin)
{
    if (cubin != NULL) {
        free(cubin->memory);
        memset(cubin, 0, sizeof *cubin);
    }
}
