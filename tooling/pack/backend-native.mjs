// The packed package imports and explains itself; where the processor has what it needs, it computes.
import { nativeProvider } from '@polygrad/backend-native';
import { checkEngine, printedBy, reasonOf } from './engines.mjs';

const { reason } = await checkEngine('native', nativeProvider);
if (/native part|self-test/.test(reason)) throw new Error(reason);

// Without addons, and where it is switched off, it says so.
const program = reasonOf('native', 'nativeProvider');
if (process.platform === 'linux' && process.arch === 'x64') {
  const without = printedBy(program, ['--no-addons']);
  if (!without.startsWith('this Node loads no addons')) throw new Error(without);
}
const off = printedBy(program, [], { POLYGRAD_NATIVE: '0' });
if (off !== 'POLYGRAD_NATIVE=0 switches it off') throw new Error(off);
