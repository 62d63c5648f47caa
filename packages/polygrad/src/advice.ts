/** What to install or change, from what was found. Pure. */
import type { Report } from './report.ts';
import { oldestNode } from './machine.ts';

/** What a first project needs. */
const first: readonly string[] = ['@polygrad/core', '@polygrad/nn', '@polygrad/backend-cpu'];

/** Platforms that there are binaries of the CUDA, OpenCL and native engines for, as `machine.platform` begins. */
const withBinaries = /^(linux (x64|arm64)|win32 x64)\b/;

/** Sentences, the most important first; none where nothing is missing. */
export function adviceFor({
  node,
  machine,
  packages,
  backends,
  chosen,
  trouble,
  detection,
}: Omit<Report, 'advice'>): string[] {
  const said: string[] = [];
  const there = new Map(packages.flatMap(({ name, version }) => (version === null ? [] : [[name, version] as const])));
  if (!node.supported) said.push(`Node ${node.version} is too old: install Node ${oldestNode} or newer.`);
  if (!there.has('@polygrad/core')) {
    const rest = first.filter((name) => !there.has(name));
    said.push(`Polygrad is not installed in this folder: npm install ${rest.join(' ')}`);
  } else if (!backends.some(({ installed }) => installed)) {
    said.push('There is no engine to compute on: npm install @polygrad/backend-cpu');
  } else if (node.supported && !backends.some(({ works }) => works)) {
    const missing = there.has('@polygrad/backend-cpu') ? 'see the reasons above' : 'npm install @polygrad/backend-cpu';
    said.push(`No engine works here: ${missing}`);
  }
  const broken = backends.filter(({ installed, score, works }) => installed && score === 0 && !works);
  // On a Node that is too old, that is the reason.
  if (node.supported && trouble !== null && broken.length > 0) {
    const list = broken.map(({ name }) => `'${name}'`).join(', ');
    said.push(`Auto-detection fails here: uninstall what does not work, or call it with { exclude: [${list}] }.`);
  }
  for (const { name, reason } of backends.filter(({ reason }) => reason.startsWith('its self-test failed')))
    said.push(
      `The engine '${name}' computes wrongly with its driver: ${reason}. Install another version of the driver.`,
    );
  for (const { name } of (detection ?? []).filter(({ verdict }) => verdict === 'timed out'))
    said.push(
      `The engine '${name}' was too slow to answer, so '${chosen}' is taken. On a busy machine that is chance: npx polygrad doctor --again asks at once. Else raise timeout of autoDetectAndConfigureGpu.`,
    );
  const versions = [...new Set(there.values())];
  if (versions.length > 1) {
    const list = [...there].map(([name, version]) => `${name} ${version}`).join(', ');
    said.push(`The packages are of several versions, which do not fit together: ${list}. Install one version of all.`);
  }
  const cards = ['@polygrad/backend-webgpu', '@polygrad/backend-opencl', '@polygrad/backend-cuda'];
  if (there.has('@polygrad/core') && !cards.some((name) => there.has(name))) {
    const others = withBinaries.test(machine.platform)
      ? ' (or @polygrad/backend-cuda, for NVIDIA; or @polygrad/backend-opencl)'
      : '';
    said.push(`To use a GPU: npm install @polygrad/auto-detect @polygrad/backend-webgpu webgpu${others}`);
  }
  if (there.has('@polygrad/core') && !there.has('@polygrad/backend-native') && withBinaries.test(machine.platform)) {
    said.push('To compute faster on this processor: npm install @polygrad/auto-detect @polygrad/backend-native');
  }
  const devices = backends.filter(({ installed }) => installed).length;
  if (devices > 1 && !there.has('@polygrad/auto-detect')) {
    said.push('To have the best engine taken by itself: npm install @polygrad/auto-detect');
  }
  return said;
}
