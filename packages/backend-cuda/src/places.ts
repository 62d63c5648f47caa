/**
 * Where libraries of NVIDIA's may be that are no part of the driver: in the system, in a CUDA toolkit, and in Python packages that bring their own.
 */
import { existsSync, readdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** What a library is called, and where else it may be. */
export interface Sought {
  /** Its versions, the newest first. */
  readonly versions: readonly number[];
  /** The name of its file, by version: under Linux, and under Windows. */
  file(version: number, isWindows: boolean): string;
  /** Folders of it below `nvidia` in a Python's packages. */
  readonly packages: readonly string[];
  /** Environment variables that name a folder it was unpacked to. */
  readonly roots: readonly string[];
}

type Env = Readonly<Record<string, string | undefined>>;

/** What toolkits call the systems they have libraries for: x86-64, servers and boards with ARM64. One for another processor cannot be opened. */
const targets = ['x86_64-linux', 'sbsa-linux', 'aarch64-linux'];

/** Names and paths of a library that are worth a try, in order: the system's, the toolkit's, those of Python. */
export function placesOf(sought: Sought, env: Env = process.env, platform: string = process.platform): string[] {
  const isWindows = platform === 'win32';
  const names = sought.versions.map((version) => sought.file(version, isWindows));
  const own = sought.roots.map((name) => env[name]);
  const toolkits = [...own, env.CUDA_HOME, env.CUDA_PATH, isWindows ? undefined : '/usr/local/cuda'];
  const inToolkit = isWindows
    ? ['bin', 'bin/x64']
    : ['lib64', ...targets.map((target) => `targets/${target}/lib`), 'lib'];
  const folders = toolkits.flatMap((root) => (root ? inToolkit.map((folder) => join(root, folder)) : []));
  for (const root of [env.VIRTUAL_ENV, env.CONDA_PREFIX]) {
    if (!root) continue;
    if (isWindows)
      folders.push(join(root, 'Library/bin'), ...inPackages(join(root, 'Lib/site-packages'), 'bin', sought));
    else folders.push(join(root, 'lib'), ...pythons(join(root, 'lib'), sought));
  }
  if (!isWindows)
    for (const lib of [join(env.HOME ?? homedir(), '.local/lib'), '/usr/local/lib', '/usr/lib'])
      folders.push(...pythons(lib, sought));
  const files = folders.flatMap((folder) => names.map((name) => join(folder, name))).filter((path) => existsSync(path));
  return [...names, ...new Set(files)];
}

/** Where the packages of all Pythons below a folder keep it. */
function pythons(lib: string, sought: Sought): string[] {
  return listed(lib)
    .filter((name) => /^python3/.test(name))
    .flatMap((name) => ['site-packages', 'dist-packages'].map((packages) => join(lib, name, packages)))
    .flatMap((packages) => inPackages(packages, 'lib', sought));
}

/** Its folders below those of Python packages. */
function inPackages(packages: string, folder: string, sought: Sought): string[] {
  return sought.packages.map((name) => join(packages, 'nvidia', name, folder));
}

function listed(folder: string): string[] {
  try {
    return readdirSync(folder).sort().reverse();
  } catch {
    return [];
  }
}

/**
 * Opens the library that an environment variable names, else the first that is found; '', or why there is none. Beside the simulated driver only the named one
 * is opened, for those of NVIDIA want a card.
 */
export function openSought(named: string, sought: Sought, simulated: boolean, open: (path: string) => string): string {
  if (named !== '') return open(named);
  if (simulated) return 'the simulated driver has none';
  let reason = '';
  for (const path of placesOf(sought)) {
    const why = open(path);
    if (why === '') return '';
    reason ||= why;
  }
  return reason;
}
