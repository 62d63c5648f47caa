/** The engine in Node for Windows, under Wine. */
import { thereSuite } from './fixtures/there-suite.ts';

thereSuite(
  'win32-x64',
  /NVIDIA's driver could not be opened \(nvcuda\.dll: .*\(error 126\)\); install NVIDIA's driver/,
);
