/** What the driver's compiler says about a kernel, as the library's error: with the source line, its IR, and the whole log. */
import { CompileError } from '@polygrad/core/engine';
import { printProgram, type Program } from '@polygrad/core/kernel';
import type { PrintedKernel } from '@polygrad/emit-c';
import type { BuildError } from './programs.ts';

/** Lines of the log that are worth repeating. */
const longestLog = 40;

/** The error for a refused kernel. */
export function explainBuild(error: BuildError, program: Program, printed: PrintedKernel): CompileError {
  const log = error.log.trim();
  const lines = error.source.split('\n');
  // "file:12:5: error: ..." of clang and its relatives, "(12) : error" of others, "error: file:12:5: ..." of PoCL.
  const at = /(?:^|[:(\s])(\d+)(?::\d+)?\)?\s*:\s*(?:fatal )?error/m.exec(log) ?? /error: \S*?:(\d+):\d+:/.exec(log);
  const number = at === null ? 0 : Number(at[1]);
  const node = printed.lines[number - 1];
  const where =
    number >= 1 && number <= lines.length
      ? ` at source line ${number}, \`${lines[number - 1]?.trim()}\`${node ? ` (${node.op} ${node.dtype})` : ''}`
      : '';
  const shown = log.split('\n').slice(0, longestLog).join('\n');
  return new CompileError(
    'opencl',
    program.name,
    `the compiler of the driver refuses it${where}:\n${shown}\nsource:\n${error.source}\nkernel IR:`,
    printProgram(program),
    { cause: error },
  );
}
