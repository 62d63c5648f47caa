/** Gathers what `polygrad doctor` reports: of the machine, of the project in a folder, of each backend. */
import { adviceFor } from './advice.ts';
import { ask } from './backends.ts';
import { machine, nodeInfo } from './machine.ts';
import { backendPackages, chooser, found, hasMnist, packagesFor } from './project.ts';
import type { BackendInfo, Report } from './report.ts';

async function inspect(folder: string, specifier: string, name: string, there: boolean): Promise<BackendInfo> {
  const nothing = { name, package: specifier, device: null, software: false, score: 0, works: false };
  const unknown = { ...nothing, driver: null, memoryBytes: null, libraries: [], products: {} };
  if (!there) return { ...unknown, installed: false, reason: `npm install ${specifier}` };
  const file = found(folder, specifier);
  if (file === null) return { ...unknown, installed: true, reason: 'its entry is not there: install it anew' };
  const said = await ask(['backend', name, file], folder);
  if (said.kind !== 'backend') {
    return { ...unknown, installed: true, reason: said.kind === 'failed' ? said.reason : 'no answer' };
  }
  const { kind: _, ...told } = said;
  return { ...nothing, installed: true, ...told };
}

type Choice = Pick<Report, 'chosen' | 'trouble' | 'detection' | 'table'>;

/** Milliseconds that auto-detection has: each of its backends has several times five seconds. */
const patience = 120_000;

async function choice(folder: string, again: boolean): Promise<Choice> {
  const nothing: Choice = { chosen: null, trouble: null, detection: null, table: null };
  const file = found(folder, chooser);
  if (file === null) return nothing;
  const said = await ask(['choice', file, again ? 'anew' : 'automatic'], folder, patience);
  if (said.kind === 'choice') return { ...nothing, chosen: said.chosen, detection: said.report, table: said.table };
  return { ...nothing, trouble: said.kind === 'failed' ? said.reason : 'no answer' };
}

/** The report on a folder; `again`: auto-detection asks and measures anew. Never throws because of a backend. */
export async function examine(folder: string, again = false): Promise<Report> {
  const packages = packagesFor(folder);
  const backends: BackendInfo[] = [];
  // One after the other: drivers that compile at once would wait for each other.
  for (const [specifier, name] of Object.entries(backendPackages)) {
    const there = packages.some((entry) => entry.name === specifier && entry.version !== null);
    backends.push(await inspect(folder, specifier, name, there));
  }
  const report = {
    folder,
    node: nodeInfo(process.versions),
    machine: machine(),
    packages,
    backends,
    ...(await choice(folder, again)),
    mnist: hasMnist(folder, packages),
  };
  return { ...report, advice: adviceFor(report) };
}
