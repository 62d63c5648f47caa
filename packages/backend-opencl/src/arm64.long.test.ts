/** The addon in Node for arm64, under an emulator: it loads, and says what is missing. No OpenCL library for arm64 is at hand. */
import { fileURLToPath } from 'node:url';
import { ProjectThere, whyNotThere } from '@polygrad/addon/fixtures/other-platforms';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const platform = 'linux-arm64';
const program = fileURLToPath(new URL('fixtures/there.ts', import.meta.url));

describe.skipIf(whyNotThere(platform) !== null)('on arm64', () => {
  let project: ProjectThere;
  beforeAll(() => {
    project = new ProjectThere(platform, 'opencl');
  });
  afterAll(() => project?.remove());

  it.each([
    ['a missing library', '', /no OpenCL library could be opened \(libOpenCL\.so\.1: .*\); install an OpenCL driver/],
    ['one that is not OpenCL', 'libc.so.6', /lacks clGetPlatformIDs: OpenCL 1\.2/],
  ])('%s is named', async (_, library, said) => {
    const { probe } = JSON.parse(await project.run(program, { POLYGRAD_OPENCL_LIBRARY: library }));
    expect(probe.score).toBe(0);
    expect(probe.reason).toMatch(said);
  });
});
