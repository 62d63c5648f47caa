/** For tests: a program in a process of its own, with another simulated driver. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** What a program printed, as JSON. Its environment is this one's and `env`; the engine is there as `cuda`, the library as `core`. */
export function ask<T>(program: string, env: Readonly<Record<string, string>> = {}): T {
  const source = `
    const cuda = await import('@polygrad/backend-cuda');
    const core = await import('@polygrad/core');
    const say = (value) => console.log('ANSWER ' + JSON.stringify(value));
    const caught = (run) => { try { run(); return null; } catch (error) { return { name: error.name, message: error.message, code: error.code, fatal: error.fatal, driverCode: error.driverCode }; } };
    ${program}`;
  const { stdout, stderr, status, signal } = spawnSync(process.execPath, ['--input-type=module', '-e', source], {
    cwd: fileURLToPath(new URL('../..', import.meta.url)),
    env: { ...process.env, ...env },
    encoding: 'utf8',
  });
  const line = stdout.split('\n').find((text) => text.startsWith('ANSWER '));
  if (status !== 0 || line === undefined) throw new Error(`ended with ${signal ?? status}: ${stdout}\n${stderr}`);
  return JSON.parse(line.slice(7)) as T;
}
