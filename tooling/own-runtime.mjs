/**
 * What every test file of the projects `together` and `devices` (vitest.config.ts) begins with. Files run one after another in one process, which
 * keeps the modules; each gets a runtime of its own. So it finds no engine, no plans, no counts and no pending work of the files before it.
 *
 * Nor does it find backends that their tests have registered: it knows those that modules register when they are imported, which happens once in
 * a process. A file whose tests load a backend names it in an import of its own, or later files would not find it: it fails otherwise.
 */
import { readdirSync } from 'node:fs';
import { afterAll, beforeAll } from 'vitest';
import { getBackend, listBackends, registerBackend } from '../packages/core/src/engine/registry.ts';
import { createRuntime, useRuntime } from '../packages/core/src/runtime/runtime.ts';

const key = Symbol.for('polygrad.tests.together');
/** The runtime that the process began with, in which nothing is registered, and the backends of its modules. */
const shared = (globalThis[key] ??= { first: null, backends: new Map() });

const before = useRuntime(createRuntime());
shared.first ??= before;
useRuntime(shared.first);
const own = createRuntime();
useRuntime(own);
for (const provider of shared.backends.values()) registerBackend(provider);

// Modules of the file have been imported by then, and none of its tests has begun.
beforeAll(() => {
  for (const name of listBackends()) if (!shared.backends.has(name)) shared.backends.set(name, getBackend(name));
});

/** Backends by the names of their packages. */
const ofPackages = readdirSync(new URL('../packages', import.meta.url))
  .filter((name) => name.startsWith('backend-'))
  .map((name) => name.slice('backend-'.length));

afterAll(async () => {
  useRuntime(own);
  const late = listBackends().find((name) => ofPackages.includes(name) && !shared.backends.has(name));
  if (late === undefined) return;
  const found = getBackend(late);
  // Tests may register one of their own under such a name. The package, if it was not loaded, registers elsewhere: now, and never again.
  useRuntime(createRuntime());
  const exported = Object.values(await import(`../packages/backend-${late}/src/index.ts`));
  useRuntime(own);
  const provider = exported.find((value) => value?.name === late && typeof value.probe === 'function');
  shared.backends.set(late, provider);
  if (found === provider)
    throw new Error(
      `backend '${late}' was loaded while tests ran: import '@polygrad/backend-${late}' at the top of this file, or later files of the process do not find it`,
    );
});
