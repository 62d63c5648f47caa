/**
 * Several printed kernels as one source. Each begins with pragmas and helper functions; equal ones are written once.
 */

/** The kernels in order, after the union of their declarations. */
export function combineSources(sources: readonly string[]): string {
  if (sources.length === 1) return sources[0]!;
  const before = new Set<string>();
  const kernels: string[] = [];
  for (const source of sources) {
    const lines = source.split('\n');
    const start = lines.findIndex((line) => line.startsWith('__kernel'));
    for (const definition of definitions(lines.slice(0, start))) before.add(definition);
    kernels.push(lines.slice(start).join('\n'));
  }
  return [...before, ...kernels].join('\n');
}

/** Lines on their own (pragmas) and functions, which end with a brace in the first column. */
function definitions(lines: readonly string[]): string[] {
  const found: string[] = [];
  let open: string[] = [];
  for (const line of lines) {
    open.push(line);
    const single =
      open.length === 1 && (line.startsWith('#') || line.endsWith(';') || line.endsWith('}') || line === '');
    if (!single && line !== '}') continue;
    found.push(open.join('\n'));
    open = [];
  }
  if (open.length > 0) found.push(open.join('\n'));
  return found;
}
