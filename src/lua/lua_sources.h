/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * lua_sources - the scripts of src/lua, as they were when this was built.
 *
 * The table is generated (embed.sh) and ends with an entry whose name is NULL.
 * Names are those of the files without ".lua"; texts hold no NUL.
 */
#ifndef LAPSED_LUA_LUA_SOURCES_H
#define LAPSED_LUA_LUA_SOURCES_H

struct lua_source {
	const char *name;
	const char *text;
};

extern const struct lua_source lua_sources[];

#endif
