"""Limits on the sizes of documents and edits. Lengths of text count characters (code points)."""

BLOCKS_AN_INSERT = 500
BLOCKS_A_READ = 500
TEXT_EDITS = 200
# Characters of Markdown in one request, and characters that they may insert in all places.
MARKDOWN = 20_000
TEXT_GROWTH = 1_000_000
# Characters of Markdown that a request writes as blocks, and of the addresses of links in it.
MARKDOWN_TEXT = 200_000
# `[` in it: the parser looks for the end of a link at each.
BRACKETS = 20_000
# Characters that a request may copy from the document into the log: copies, conversions, tables.
COPIED = 4_000_000
EDITS_TOGETHER = 200
# Edits among them that search the whole document.
SEARCHES_TOGETHER = 10
ENTRIES_A_PAGE = 500
QUERY = 1_000
# Seconds that a call may wait for a change.
WAIT_SECONDS = 30
# Sessions in a list of those on a document.
SESSIONS_LISTED = 100
PLACES = 100
PLACES_AT_MOST = 500
TOP_LEVEL_BLOCKS = 10_000
ELEMENTS = 50_000
DEPTH = 8

# Groups that a user is in; members of a group.
GROUPS_OF_A_USER = 100
MEMBERS = 200

# Comments of a document, with replies, and their bytes; characters of a comment, and of the passage
# that it is on.
COMMENTS = 2_000
COMMENTS_BYTES = 4 << 20
COMMENT = 5_000
QUOTE = 2_000
# Suggestions of a document, and their bytes.
SUGGESTIONS = 500
SUGGESTIONS_BYTES = 8 << 20
SUGGESTIONS_A_PAGE = 50

LEAF_TEXT = 50_000
EQUATION = 10_000
CODE = 200_000
CODE_LANGUAGE = 64
TABLE_ROWS = 200
TABLE_COLUMNS = 50
REFERENCES = 2_000
# Characters of a bibliography that is imported, and parts of it that its answer names as omitted.
BIBLIOGRAPHY = 2 << 20
OMISSIONS = 1_000

# Citations in one pair of brackets, and characters of the words beside each.
CITATIONS = 50
AFFIX = 200
LABEL = 100
# Leaves of a note or a caption.
INLINE_LEAVES = 1_000
LIST_START = 999_999_999
INSTITUTIONS_OF_AUTHOR = 20
EMAIL = 254
KEYWORDS = 50
KEYWORD = 200
DATE = 100
LANGUAGE = 35

IDENTIFIER = 200
URL = 8_192
DATA_URL = 1024 * 1024
CSS_VALUE = 1_000
# Files that a text names by the addresses of its pictures.
FILES_A_TEXT = 200
