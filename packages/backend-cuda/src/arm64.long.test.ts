/** The engine in Node for arm64, under an emulator. */
import { thereSuite } from './fixtures/there-suite.ts';

thereSuite('linux-arm64', /NVIDIA's driver could not be opened \(libcuda\.so\.1: .*\); install NVIDIA's driver/);
