/**
 * Makes the package of a platform from its binary, ready for `npm publish`:
 *
 *   node native/package.mjs OUT [BINARY]       default: native/build/opencl.node
 */
import { packageCommand } from '@polygrad/addon/native/package.mjs';
import { addon } from './addon.mjs';

packageCommand(addon);
