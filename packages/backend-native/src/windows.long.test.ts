/** The engine in Node for Windows, under Wine: its addon, the calling convention, pages of code, threads, the self-test; and bad calls. */
import { ProjectThere, whyNotThere } from '@polygrad/addon/fixtures/other-platforms';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const platform = 'win32-x64';
const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

describe.skipIf(whyNotThere(platform) !== null)('on Windows', () => {
  let project: ProjectThere;
  beforeAll(() => {
    project = new ProjectThere(platform, 'native');
  });
  afterAll(() => project?.remove());

  it('computes what it should', async () => {
    // Frames of 4 to 160 KiB: more than the page by which a stack grows, on threads that have not used so much.
    const words = [401, 40, 250, 300, 2000, 10_000].map(String);
    const { probe, passed, failed, different } = JSON.parse(await project.run(here('fixtures/there.ts'), {}, words));
    expect(probe.reason).toMatch(/^machine code, AVX/);
    expect([failed, different]).toEqual([0, []]);
    expect(passed).toBeGreaterThan(50);
  });

  // Not `forks`: Wine has no pipes for them.
  it.each([
    ['engines', 300],
    ['heap', 1000],
    ['workers', 16],
    ['endings', 40],
  ])('%s many times', async (kind, count) => {
    expect(await project.run(here('../soak/native.mjs'), {}, [kind, String(count)])).toBe('fine');
  });
});
