/**
 * What every test file of the project `together` (vitest.config.ts) begins with. Files run one after another in one process, which keeps the
 * modules; each gets a runtime of its own, so that it finds no engine, no plans, no counts and no pending work of the files before it.
 */
import { createRuntime, useRuntime } from '../packages/core/src/runtime/runtime.ts';

useRuntime(createRuntime());
