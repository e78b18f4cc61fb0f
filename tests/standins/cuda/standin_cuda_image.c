/* SPDX-License-Identifier: MIT */
/* The stand-in driver: what it wants of a cubin beyond what the library's own reader tells. */
#include "standin_cuda_state.h"
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool standin_is_elf(const void *code)
{
    return memcmp(code, ELFMAG, SELFMAG) == 0;
}

size_t standin_image_size(const void *code)
{
    Elf64_Ehdr header;
    memcpy(&header, code, sizeof header);
    size_t end = sizeof header;
    const size_t table = header.e_shoff + (size_t)header.e_shnum * sizeof(Elf64_Shdr);
    end = table > end ? table : end;
    for (size_t i = 0; i < header.e_shnum; i++) {
        Elf64_Shdr section;
        memcpy(&section, (const char *)code + header.e_shoff + i * sizeof section, sizeof section);
        const size_t bytes = section.sh_type == SHT_NOBITS ? 0 : section.sh_size;
        end = section.sh_offset + bytes > end ? section.sh_offset + bytes : end;
    }
    const size_t programs = header.e_phoff + (size_t)header.e_phnum * sizeof(Elf64_Phdr);
    return programs > end ? programs : end;
}

static bool get_section(const standin_library *library, size_t index, Elf64_Shdr *out)
{
    Elf64_Ehdr header;
    memcpy(&header, library->image, sizeof header);
    if (index >= header.e_shnum) {
        return false;
    }
    memcpy(out, library->image + header.e_shoff + index * sizeof *out, sizeof *out);
    return out->sh_type == SHT_NOBITS || (out->sh_offset <= library->image_size &&
                                          out->sh_size <= library->image_size - out->sh_offset);
}

static bool add_global(standin_library *library, const Elf64_Sym *symbol, const Elf64_Shdr *strings)
{
    Elf64_Shdr home;
    if (ELF64_ST_TYPE(symbol->st_info) != STT_OBJECT || symbol->st_size == 0 ||
        symbol->st_name >= strings->sh_size || !get_section(library, symbol->st_shndx, &home)) {
        return true;
    }
    standin_global *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return false;
    }
    const size_t room = strings->sh_size - symbol->st_name;
    (void)snprintf(made->name, sizeof made->name, "%.*s", (int)room,
                   (const char *)library->image + strings->sh_offset + symbol->st_name);
    made->size = symbol->st_size;
    if (home.sh_type != SHT_NOBITS && symbol->st_value <= home.sh_size &&
        symbol->st_size <= home.sh_size - symbol->st_value) {
        made->data = library->image + home.sh_offset + symbol->st_value;
    }
    made->next = library->globals;
    library->globals = made;
    return true;
}

bool standin_read_globals(standin_library *library)
{
    Elf64_Shdr table;
    Elf64_Shdr strings;
    for (size_t i = 0; get_section(library, i, &table); i++) {
        if (table.sh_type != SHT_SYMTAB || !get_section(library, table.sh_link, &strings)) {
            continue;
        }
        for (size_t at = 0; at + sizeof(Elf64_Sym) <= table.sh_size; at += sizeof(Elf64_Sym)) {
            Elf64_Sym symbol;
            memcpy(&symbol, library->image + table.sh_offset + at, sizeof symbol);
            if (!add_global(library, &symbol, &strings)) {
                return false;
            }
        }
    }
    return true;
}
