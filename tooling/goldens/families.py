"""The families of operations, in the order of the file."""

import elementwise

FAMILIES = [elementwise]
