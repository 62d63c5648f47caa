import { describe, expect, it } from 'vitest';
import { adviceFor } from './advice.ts';
import type { BackendInfo } from './report.ts';
import { linesOf } from './lines.ts';
import { machine, nodeInfo } from './machine.ts';

const names = [
  '@polygrad/core',
  '@polygrad/nn',
  '@polygrad/auto-detect',
  '@polygrad/backend-cpu',
  '@polygrad/backend-webgpu',
  '@polygrad/backend-native',
];

/** A report in which these packages are installed, and the CPU engine works if it is there. */
function report(versions: Readonly<Record<string, string>>, works = true, node = '22.1.0') {
  const backends = ['cpu', 'webgpu'].map((name): BackendInfo => {
    const installed = Object.hasOwn(versions, `@polygrad/backend-${name}`);
    const runs = installed && works && name === 'cpu';
    const reason = installed ? 'its process ended with SIGSEGV' : `npm install @polygrad/backend-${name}`;
    return {
      name,
      package: `@polygrad/backend-${name}`,
      installed,
      works: runs,
      device: runs ? 'a processor' : null,
      driver: null,
      memoryBytes: null,
      libraries: runs ? ['/lib/cpu.node'] : [],
      products: {},
      software: false,
      score: 1,
      reason: runs ? '2 threads' : reason,
    };
  });
  const packages = names.map((name) => ({ name, version: versions[name] ?? null, folder: null }));
  const found = { folder: '/f', node: nodeInfo({ node, v8: '12' }), machine: machine(), packages, backends };
  return { ...found, chosen: null, trouble: null, detection: null, table: null, mnist: false };
}

const core = { '@polygrad/core': '0.1.0' };
const cpu = { ...core, '@polygrad/backend-cpu': '0.1.0' };

describe('advice', () => {
  it('names what an empty folder lacks, and leaves out what is there', () => {
    expect(adviceFor(report({}))).toEqual([
      'Polygrad is not installed in this folder: npm install @polygrad/core @polygrad/nn @polygrad/backend-cpu',
    ]);
    expect(adviceFor(report({ '@polygrad/nn': '0.1.0' }))[0]).toContain(
      'npm install @polygrad/core @polygrad/backend-cpu',
    );
  });

  it('names an engine where there is none, or none works', () => {
    expect(adviceFor(report(core))[0]).toBe('There is no engine to compute on: npm install @polygrad/backend-cpu');
    expect(adviceFor(report(cpu, false))[0]).toBe('No engine works here: see the reasons above');
    const gpu = { ...core, '@polygrad/backend-webgpu': '0.1.0' };
    expect(adviceFor(report(gpu))[0]).toBe('No engine works here: npm install @polygrad/backend-cpu');
  });

  it('says that Node is too old and that versions differ', () => {
    expect(adviceFor(report(cpu, true, '18.20.4'))[0]).toBe('Node 18.20.4 is too old: install Node 20 or newer.');
    expect(linesOf({ ...report(cpu, true, '18.20.4'), advice: [] })[0]).toContain('too old, Polygrad needs Node 20');
    // What does not work there is no backend's fault.
    const fallen = { ...report(cpu, false, '16.20.2'), trouble: 'its process ended with SIGABRT' };
    const broken = fallen.backends.map((backend) => ({ ...backend, score: 0 }));
    const old = adviceFor({ ...fallen, backends: broken }).filter(
      (text) => !/^To (use a GPU|compute faster)/.test(text),
    );
    expect(old).toEqual(['Node 16.20.2 is too old: install Node 20 or newer.']);
    const mixed = adviceFor(report({ ...core, '@polygrad/backend-cpu': '0.2.0' }));
    expect(mixed[0]).toContain('@polygrad/core 0.1.0, @polygrad/backend-cpu 0.2.0');
  });

  it('tells of an engine that was too slow to answer, whose place another one has', () => {
    const row = (verdict: string) => ({ name: 'native', verdict });
    const found = { ...report({ ...cpu, '@polygrad/auto-detect': '0.1.0' }), chosen: 'cpu' };
    const said = (verdict: string): string[] => adviceFor({ ...found, detection: [row(verdict)] });
    expect(said('timed out')).toEqual([
      expect.stringMatching(/^The engine 'native' was too slow to answer, so 'cpu' is taken\. .*doctor --again/),
      ...said('slower'),
    ]);
  });

  it('names machine code where there is some', () => {
    const on = (platform: string): string[] => adviceFor({ ...report(cpu), machine: { ...machine(), platform } });
    const text = 'To compute faster on this processor: npm install @polygrad/auto-detect @polygrad/backend-native';
    expect(on('linux x64, 6.1')).toContain(text);
    expect(on('linux arm64, 6.1')).toContain(text);
    expect(on('darwin arm64, 23')).not.toContain(text);
  });

  it('names engines for cards where there are binaries of them', () => {
    const on = (platform: string): string =>
      adviceFor({ ...report(cpu), machine: { ...machine(), platform } }).find((text) => /use a GPU/.test(text)) ?? '';
    for (const platform of ['linux x64, 6.1', 'linux arm64, 6.1', 'win32 x64, 10.0'])
      expect(on(platform)).toMatch(/webgpu \(or @polygrad\/backend-cuda, for NVIDIA; or @polygrad\/backend-opencl\)$/);
    for (const platform of ['darwin arm64, 23', 'win32 arm64, 10.0', 'linux arm, 6.1'])
      expect(on(platform)).toMatch(/@polygrad\/backend-webgpu webgpu$/);
  });

  it('has nothing to say where all is there', () => {
    const all = Object.fromEntries(names.map((name) => [name, '0.1.0']));
    expect(adviceFor(report(all))).toEqual([]);
    const lines = linesOf({ ...report(all), advice: [] });
    expect(lines.at(-2)).toMatch(/^ {2}library: +\/lib\/cpu\.node$/);
    expect(lines.at(-3)).toMatch(/^cpu: +works: a processor, 2 threads$/);
    expect(lines.at(-1)).toMatch(/^webgpu: +does not work here: its process ended with SIGSEGV$/);
  });
});
