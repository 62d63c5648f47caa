/**
 * A set-up file of all tests but those in the list `replacing` of vitest.config.ts: they may not replace modules. In a process that files share,
 * that would leave two of each to the files after it. Modules that are compiled are Node's to load, so nothing would be replaced.
 */
import { vi } from 'vitest';

for (const name of ['resetModules', 'doMock', 'mock'])
  vi[name] = () => {
    throw new Error(
      `vi.${name} outside of files that replace modules: name the file in \`replacing\` of vitest.config.ts`,
    );
  };
