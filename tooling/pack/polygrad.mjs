// The doctor in a project with an engine, beside backends that end their process or lack a file, and in an empty folder.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const run = (words, cwd = process.cwd()) => {
  const cli = join(process.cwd(), 'node_modules/polygrad/dist/cli.js');
  const { status, stdout, stderr } = spawnSync(process.execPath, [cli, ...words], { cwd, encoding: 'utf8' });
  return { status, stdout, stderr };
};
const expect = (fine, what) => {
  if (!fine) throw new Error(what);
};

/** Puts a package in the place of a backend. */
function pretend(name, code) {
  const folder = join('node_modules/@polygrad', name);
  mkdirSync(folder, { recursive: true });
  const manifest = {
    name: `@polygrad/${name}`,
    version: '0.0.0',
    type: 'module',
    exports: { '.': './index.js', './package.json': './package.json' },
  };
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
  if (code !== null) writeFileSync(join(folder, 'index.js'), code);
}
pretend('backend-opencl', 'process.stdout.write("a driver speaks\\n"); process.abort();');
pretend('backend-webgpu', null);

const here = run(['doctor', '--json']);
expect(here.status === 0, `exit code ${here.status}: ${here.stderr}`);
const { backends, packages, node, chosen, trouble, detection, table, advice } = JSON.parse(here.stdout);
const [cpu, webgpu, opencl] = ['cpu', 'webgpu', 'opencl'].map((name) => backends.find((row) => row.name === name));
expect(cpu.works && /threads?$/.test(cpu.reason), `the CPU engine: ${JSON.stringify(cpu)}`);
expect(!webgpu.works && /not there/.test(webgpu.reason), `a package without its file: ${JSON.stringify(webgpu)}`);
expect(!opencl.works && /^its process ended/.test(opencl.reason), `a backend that aborts: ${JSON.stringify(opencl)}`);
expect(packages.find(({ name }) => name === '@polygrad/core').version !== null, 'core is not found');
expect(node.supported, 'this Node is refused');
// Auto-detection asks each in a process of its own.
expect(chosen !== null && trouble === null, `auto-detection chose ${chosen}: ${trouble}`);
const crashed = detection.find((row) => row.name === 'opencl');
expect(crashed.verdict === 'crashed', `auto-detection of a backend that aborts: ${JSON.stringify(crashed)}`);
expect(table.includes('opencl') && table.includes('score'), `the table: ${table}`);
expect(Array.isArray(advice), `advice: ${advice}`);

const empty = mkdtempSync(join(tmpdir(), 'polygrad-empty-'));
try {
  const { status, stdout } = run(['doctor'], empty);
  expect(status === 0 && /^to do: +Polygrad is not installed.*npm install @polygrad\/core/m.test(stdout), stdout);
} finally {
  rmSync(empty, { recursive: true });
}
const wrong = run(['doctor', '--fix']);
expect(wrong.status === 2 && wrong.stderr.includes("'--fix'"), `a wrong option: ${wrong.status} ${wrong.stderr}`);
const npx = spawnSync('npx', ['--no-install', 'polygrad', '--help'], {
  encoding: 'utf8',
  shell: process.platform === 'win32',
});
expect(npx.stdout.startsWith('usage: polygrad doctor'), `npx: ${npx.stdout}${npx.stderr}`);
