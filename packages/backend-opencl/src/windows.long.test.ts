/** The engine in Node for Windows, under Wine, whose OpenCL is that of this machine: PoCL, where it is installed. */
import { fileURLToPath } from 'node:url';
import { ProjectThere, whyNotThere } from '@polygrad/addon/fixtures/other-platforms';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hasDevice } from './fixtures/device.ts';

const platform = 'win32-x64';
const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

describe.skipIf(whyNotThere(platform) !== null)('on Windows', () => {
  let project: ProjectThere;
  beforeAll(() => {
    project = new ProjectThere(platform, 'opencl');
  });
  afterAll(() => project?.remove());

  it.skipIf(!hasDevice())('the suite passes', async () => {
    const { passed, failed, cache, files } = JSON.parse(await project.run(here('fixtures/there.ts')));
    expect(failed).toBe(0);
    expect(passed).toBeGreaterThan(5);
    expect(cache).toMatch(/^C:\\users\\.*\\AppData\\Local\/polygrad\/opencl$/);
    expect(files).toBeGreaterThan(5);
  });

  it.skipIf(!hasDevice())('bad calls are refused', async () => {
    const env = { POLYGRAD_OPENCL_ADDON: `@polygrad/backend-opencl-${platform}/opencl.node` };
    expect(await project.run(here('../soak/hostile.mjs'), env, ['500'])).toMatch(/every bad call was refused/);
  });

  it.each([
    ['a missing library', 'nowhere.dll', /could be opened \(nowhere\.dll: .*\(error 126\)\); install/],
    ['one that is not OpenCL', 'kernel32.dll', /lacks clGetPlatformIDs: OpenCL 1\.2/],
  ])('%s is named', async (_, library, said) => {
    const { probe } = JSON.parse(await project.run(here('fixtures/there.ts'), { POLYGRAD_OPENCL_LIBRARY: library }));
    expect(probe.score).toBe(0);
    expect(probe.reason).toMatch(said);
  });
});
