/** The addon against bad calls, a system without threads, and overwritten memory: in processes of their own, which must survive. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { hasDevice } from './testing/device.ts';

const here = (path: string): string => fileURLToPath(new URL(`../${path}`, import.meta.url));
const answers = (command: string): boolean => spawnSync(command, ['--version'], { stdio: 'ignore' }).status === 0;
const isLinux = process.platform === 'linux';

const folder = mkdtempSync(join(tmpdir(), 'polygrad-hostile-'));
afterAll(() => rmSync(folder, { recursive: true }));

function run(program: string, env: Readonly<Record<string, string>> = {}): string {
  const { status, signal, stdout, stderr } = spawnSync(process.execPath, [here(`soak/${program}.mjs`)], {
    env: { ...process.env, ...env },
    encoding: 'utf8',
  });
  if (status !== 0) expect.fail(`${program} ended with ${signal ?? status}:\n${stdout}\n${stderr}`);
  return stdout;
}

describe.skipIf(!hasDevice())('the addon', () => {
  it('refuses every bad call and survives', () => {
    expect(run('hostile')).toMatch(/every bad call was refused, and the device computes/);
  });

  it.skipIf(!isLinux || !answers('cc'))('goes on where the system gives no thread', () => {
    const [source, library] = [join(folder, 'threads.c'), join(folder, 'threads.so')];
    // Only the addon's threads: they come from the C++ library, with one way to begin.
    writeFileSync(
      source,
      `#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int pthread_create(pthread_t* t, const pthread_attr_t* a, void* (*f)(void*), void* x) {
  static int (*real)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  if (!real) real = dlsym(RTLD_NEXT, "pthread_create");
  Dl_info from;
  const char* file = getenv("NO_THREADS");
  if (file && access(file, F_OK) == 0 && dladdr(__builtin_return_address(0), &from) && strstr(from.dli_fname, "cuda.node"))
    return EAGAIN;
  return real(t, a, f, x);
}`,
    );
    execFileSync('cc', ['-shared', '-fPIC', source, '-o', library, '-ldl']);
    const env = { LD_PRELOAD: library, NO_THREADS: join(folder, 'no-threads') };
    expect(run('threads', env)).toMatch(/computed with and without threads/);
  });
});

describe.skipIf(!isLinux || !answers('readelf') || !hasDevice())('the binary', () => {
  const read = (...args: string[]): string =>
    execFileSync('readelf', ['-W', ...args, here('native/build/cuda.node')], { encoding: 'utf8' });

  it('has tables of functions that nobody can overwrite, and a stack that is neither code nor unguarded', () => {
    expect(read('--segments')).toMatch(/GNU_RELRO/);
    expect(read('--segments')).toMatch(/GNU_STACK\s+(0x0+\s+){5}RW\s/);
    expect(read('--dynamic')).toMatch(/BIND_NOW|FLAGS_1.*NOW/);
    expect(read('--dyn-syms')).toMatch(/__stack_chk_fail/);
  });
});
