/* SPDX-License-Identifier: MIT */
/*
 * Congestion controls out of BPF objects.
 *
 *   load name OBJECT...      says what the algorithm in each is called
 *   load register OBJECT...  puts them into the running kernel, where they stay until it ends
 *   load hold OBJECT...      puts them there for as long as this program runs: it says "held" and reads its standard
 *                            input to the end. However it ends, the kernel takes them out (since Linux 6.4)
 *
 * A program of its own, linked statically, so that this can happen on a machine without any library. What libbpf
 * and the kernel's verifier complain of goes to standard error as they say it.
 */
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#define SECTION ".struct_ops"
#define TYPE "tcp_congestion_ops"

/* linux/bpf.h since 6.4: a struct_ops that is registered while a link to it is open. */
#define LINKED (1U << 13) /* BPF_F_LINK */
#define ENOTSUPP 524 /* include/linux/errno.h: it reaches user space, which has no name for it */
#define STRUCT_OPS 44 /* BPF_STRUCT_OPS, of enum bpf_attach_type */

enum order { NAME, REGISTER, HOLD };

static int complain(const char *words, ...)
{
	va_list arguments;

	va_start(arguments, words);
	vfprintf(stderr, words, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	return 1;
}

static int only_warnings(enum libbpf_print_level level, const char *words, va_list arguments)
{
	return level == LIBBPF_WARN ? vfprintf(stderr, words, arguments) : 0;
}

/* The one struct_ops of an object. */
static struct bpf_map *operations(struct bpf_object *object)
{
	struct bpf_map *map, *found = NULL;

	bpf_object__for_each_map(map, object) {
		if (bpf_map__type(map) != BPF_MAP_TYPE_STRUCT_OPS)
			continue;
		if (found) {
			complain("has more than one struct in SEC(\"" SECTION "\")");
			return NULL;
		}
		found = map;
	}
	if (!found)
		complain("has no struct " TYPE " in SEC(\"" SECTION "\")");
	return found;
}

/* Where in the struct its name stands; negative if the struct is another one. */
static int name_offset(const struct btf *btf, const struct bpf_map *map)
{
	int id = btf__find_by_name_kind(btf, bpf_map__name(map), BTF_KIND_VAR);
	const struct btf_type *type = btf__type_by_id(btf, btf__type_by_id(btf, id)->type);
	const char *name = btf__name_by_offset(btf, type->name_off);

	if (strcmp(name, TYPE)) {
		complain("%s is a struct %s, not " TYPE, bpf_map__name(map), name);
		return -1;
	}
	for (int at = 0; at < btf_vlen(type); at++)
		if (!strcmp(btf__name_by_offset(btf, btf_members(type)[at].name_off), "name"))
			return btf_member_bit_offset(type, at) / 8;
	complain("struct " TYPE " has no member name");
	return -1;
}

/* The bytes of the section that holds the struct. */
static Elf_Data *section(Elf *elf)
{
	Elf_Scn *part = NULL;
	GElf_Shdr header;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return NULL;
	while ((part = elf_nextscn(elf, part)))
		if (gelf_getshdr(part, &header) && !strcmp(elf_strptr(elf, names, header.sh_name), SECTION))
			return elf_getdata(part, NULL);
	return NULL;
}

static int tell_name(const char *file, int offset)
{
	char name[17] = "";
	int handle = open(file, O_RDONLY);
	Elf *elf = elf_version(EV_CURRENT) == EV_NONE ? NULL : elf_begin(handle, ELF_C_READ, NULL);
	Elf_Data *data = elf ? section(elf) : NULL;

	if (data && data->d_size >= offset + sizeof(name) - 1)
		memcpy(name, (char *)data->d_buf + offset, sizeof(name) - 1);
	elf_end(elf);
	close(handle);
	if (!*name)
		return complain("its struct " TYPE " has no .name");
	puts(name);
	return 0;
}

/* Gives the registered algorithm to the kernel for good, or to a link that this process holds open. */
static int attach(struct bpf_map *map, enum order order)
{
	if (!bpf_map__attach_struct_ops(map))
		return -1;
	return order == HOLD && bpf_link_create(bpf_map__fd(map), 0, STRUCT_OPS, NULL) < 0 ? -1 : 0;
}

static int put_into_kernel(struct bpf_object *object, struct bpf_map *map, enum order order)
{
	if (order == HOLD)
		bpf_map__set_map_flags(map, LINKED);
	if (bpf_object__load(object)) {
		switch (errno) {
		case EPERM:
			return complain("this needs root: the kernel takes programs from nobody else");
		case EINVAL:
		case ENOTSUPP:
			if (order == HOLD && bpf_map__fd(map) < 0)
				return complain("Linux 6.4 or later takes programs out again by itself, this kernel does not");
		}
		return complain("the kernel does not take it");
	}
	if (!attach(map, order))
		return 0;
	switch (errno) {
	case EEXIST:
		return complain("this kernel has a congestion control of that name: choose another .name");
	case EINVAL:
		return complain(
			"the kernel does not register it: it wants ssthresh, undo_cwnd, one of cong_avoid and cong_control, "
			"and a name of letters, digits, _ and .");
	default:
		return complain("the kernel does not register it: %s", strerror(errno));
	}
}

static int handle(const char *file, enum order order)
{
	struct bpf_object *object = bpf_object__open_file(file, NULL);
	struct bpf_map *map;
	int offset;

	if (!object)
		return complain("is no BPF object");
	map = operations(object);
	if (!map)
		return 1;
	offset = name_offset(bpf_object__btf(object), map);
	if (offset < 0)
		return 1;
	return order == NAME ? tell_name(file, offset) : put_into_kernel(object, map, order);
}

/* Until whoever started this closes the other end, or ends. */
static void wait_for_the_end(void)
{
	char byte;

	puts("held");
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
}

int main(int count, char **words)
{
	static const char *const orders[] = {"name", "register", "hold"};
	int order = 0;

	while (count > 1 && order < 3 && strcmp(words[1], orders[order]))
		order++;
	if (count < 3 || order == 3)
		return complain("usage: load name|register|hold OBJECT...");
	libbpf_set_print(only_warnings);
	for (int at = 2; at < count; at++)
		if (handle(words[at], order))
			return 1;
	if (order == HOLD)
		wait_for_the_end();
	return 0;
}
