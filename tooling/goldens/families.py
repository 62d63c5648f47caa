"""The families of operations, in the order of the file."""

import creation
import elementwise
import images
import indexing
import large
import linear
import movement
import networks
import reduction

FAMILIES = [creation, elementwise, reduction, movement, indexing, linear, images, networks, large]
