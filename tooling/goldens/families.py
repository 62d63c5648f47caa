"""The families of operations, in the order of the file."""

import creation
import elementwise
import images
import large
import linear
import movement
import networks
import reduction

FAMILIES = [creation, elementwise, reduction, movement, linear, images, networks, large]
