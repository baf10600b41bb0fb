# SPDX-License-Identifier: BSD-2-Clause
#
# C without comments and without what is between quotes, line by line, so that
# line numbers stay.  Set keep=1 to keep the quoted text (for #include).

BEGIN {
	CODE = 0; COMMENT = 1
	state = CODE
}

FNR == 1 {
	state = CODE
}

{
	out = ""
	rest = $0
	while (rest != "") {
		if (state == COMMENT) {
			i = index(rest, "*/")
			if (i == 0)
				break
			rest = substr(rest, i + 2)
			state = CODE
			out = out " "
		} else if (!match(rest, /\/\*|\/\/|["']/)) {
			out = out rest
			break
		} else {
			what = substr(rest, RSTART, RLENGTH)
			out = out substr(rest, 1, RSTART - 1)
			rest = substr(rest, RSTART + RLENGTH)
			if (what == "//")
				break
			if (what == "/*")
				state = COMMENT
			else
				quoted(what)
		}
	}
	print FILENAME ":" FNR ":" out
}

# Takes a literal that began with `quote` off the front of `rest`.
function quoted(quote,    n, c) {
	for (n = 1; n <= length(rest); n++) {
		c = substr(rest, n, 1)
		if (c == "\\")
			n++
		else if (c == quote)
			break
	}
	out = out quote (keep ? substr(rest, 1, n - 1) : "") quote
	rest = substr(rest, n + 1)
}
