/** The engine in Node for Windows, under Wine; and in a program of another name that has Node in it, as Electron is. */
import { fileURLToPath } from 'node:url';
import { ProjectThere, whyNotThere } from '@polygrad/addon/fixtures/other-platforms';
import { expect, it } from 'vitest';
import { thereSuite } from './fixtures/there-suite.ts';

const platform = 'win32-x64';
const missing = /NVIDIA's driver could not be opened \(nvcuda\.dll: .*\(error 126\)\); install NVIDIA's driver/;

thereSuite(platform, missing);

it.skipIf(whyNotThere(platform) !== null)('on Windows the program may have another name', async () => {
  const project = new ProjectThere(platform, 'cuda');
  try {
    const program = fileURLToPath(new URL('fixtures/there.ts', import.meta.url));
    const node = project.nodeNamed('electron.exe');
    const { probe } = JSON.parse(await project.run(program, { POLYGRAD_CUDA_DRIVER: '' }, [], node));
    expect(probe.reason).toMatch(missing);
  } finally {
    project.remove();
  }
});
