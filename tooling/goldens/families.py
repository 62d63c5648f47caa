"""The families of operations, in the order of the file."""

import elementwise
import images
import linear
import movement
import networks
import reduction

FAMILIES = [elementwise, reduction, movement, linear, images, networks]
