/** Why a pipeline could not be made, with the lines of WGSL that the compiler complains about. */
import { host } from '#host';

/** Lines shown before and after the one at fault. */
const around = 2;

/** `reason` in one line; `where`: the lines concerned, empty where the compiler names none. Never throws. */
export async function explain(
  module: GPUShaderModule,
  source: string,
  error: unknown,
): Promise<{ reason: string; where: string }> {
  const said = error instanceof Error ? error.message : String(error);
  const messages: readonly GPUCompilationMessage[] = await host
    .paced(() => module.getCompilationInfo())
    .then(
      (info) => info.messages,
      () => [],
    );
  const worst = messages.find((m) => m.type === 'error');
  if (worst === undefined) return { reason: said.trim(), where: '' };
  const { lineNum, linePos, message } = worst;
  return { reason: `WGSL line ${lineNum}:${linePos}: ${message}`, where: excerpt(source, lineNum) };
}

function excerpt(source: string, line: number): string {
  const lines = source.split('\n');
  const from = Math.max(1, line - around);
  const shown = lines.slice(from - 1, line + around);
  return shown.map((text, i) => `${from + i === line ? '>' : ' '} ${from + i} | ${text}\n`).join('');
}
