/** Recovery on the OpenCL engine. A file of its own: it needs a process in which no engine was current before. */
import { recoverySuite } from '@polygrad/addon/fixtures/recovery';
import { kit } from './fixtures/kit.ts';
import './index.ts';

recoverySuite(kit);
