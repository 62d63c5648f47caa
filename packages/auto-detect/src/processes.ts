/**
 * What `#processes` is on Node: backends with native code are asked in processes of their own, and what they answer depends on is named without
 * loading them.
 *
 * Parts of Node are got from `process`, which also older bundlers for Node take. Where a process cannot be started (a bundled program, a
 * Node without permission, Electron), there are none: backends are then asked in the program's own.
 */
import { showAs } from '@polygrad/core/engine';
import { type Answer, type Apart, type Asked, EndedError, type Processes, type Question, startedId } from './apart.ts';
import { type DetectionReport, formatReport } from './report.ts';

const host = globalThis.process as typeof process | undefined;
const part = <T>(name: string): T =>
  (host?.getBuiltinModule as ((name: string) => unknown) | undefined)?.(`node:${name}`) as T;

type ChildProcess = typeof import('node:child_process');
type Files = typeof import('node:fs');
type Modules = typeof import('node:module');
type System = typeof import('node:os');
type Urls = typeof import('node:url');

/** Arguments of Node that decide what a backend may do. */
const passed =
  /^(--conditions=|-C=|--no-addons$|--jitless$|--permission$|--experimental-permission$|--allow-|--preserve-symlinks)/;

/** Variables that decide which driver is found, and which device. */
const variables =
  /^(POLYGRAD_|VK_|OCL_|OPENCL_|POCL_|CUDA_|NVIDIA_|HIP_|ROCR_|MESA_|LIBGL_|LD_|DYLD_|NODE_OPTIONS$|DISPLAY$|WAYLAND_DISPLAY$)/;

/** Folders that list drivers and devices. */
const folders = [
  '/etc/OpenCL/vendors',
  '/etc/vulkan/icd.d',
  '/usr/share/vulkan/icd.d',
  '/usr/local/share/vulkan/icd.d',
  '/dev/dri',
];
/** Where drivers' libraries lie. */
const libraryFolders = [
  '/usr/lib/x86_64-linux-gnu',
  '/usr/lib/aarch64-linux-gnu',
  '/usr/lib64',
  '/usr/lib',
  '/usr/local/lib',
  '/usr/lib/wsl/lib',
];
const libraries = ['libcuda.so.1', 'libOpenCL.so.1', 'libvulkan.so.1', 'libpocl.so.2', 'libclblast.so.1'];
const systemFiles = ['/proc/driver/nvidia/version', '/sys/module/amdgpu/version', '/sys/module/nvidia/version'];
const windowsFiles = ['nvcuda.dll', 'OpenCL.dll', 'vulkan-1.dll'];

function machineFacts(fs: Files, os: System): string {
  const of = (path: string): string => {
    try {
      const { size, mtimeMs } = fs.statSync(path);
      return `${path} ${size} ${Math.round(mtimeMs)}`;
    } catch {
      return '';
    }
  };
  const list = (path: string): string => {
    try {
      const names = fs.readdirSync(path).sort();
      return path.startsWith('/dev') ? `${path} ${names}` : names.map((name) => of(`${path}/${name}`)).join();
    } catch {
      return '';
    }
  };
  const text = (path: string): string => {
    try {
      return fs.readFileSync(path, 'utf8');
    } catch {
      return '';
    }
  };
  const { env, platform, arch, versions } = host!;
  const cards = (() => {
    try {
      return fs.readdirSync('/dev').filter((name) => /^(nvidia|kfd)/.test(name));
    } catch {
      return [];
    }
  })();
  const windows = platform === 'win32' ? windowsFiles.map((name) => of(`${env.SystemRoot}\\System32\\${name}`)) : [];
  return [
    `${platform} ${arch} ${os.release()} node ${versions.node} v8 ${versions.v8}`,
    `${os.cpus()[0]?.model} ${os.availableParallelism?.() ?? os.cpus().length}`,
    ...Object.entries(env)
      .filter(([name]) => variables.test(name))
      .map(([name, value]) => `${name}=${value}${value?.startsWith('/') ? ` ${of(value)}` : ''}`)
      .sort(),
    ...folders.map(list),
    ...libraryFolders.flatMap((folder) => libraries.map((name) => of(`${folder}/${name}`))),
    ...systemFiles.map(text),
    ...windows,
    cards.join(),
    host!.execArgv.filter((word) => passed.test(word)).join(' '),
  ]
    .filter((line) => line !== '')
    .join('\n');
}

type Unnumbered = Question extends infer Q ? (Q extends Question ? Omit<Q, 'id'> : never) : never;

/** A process that answers for one backend. */
class AskedProcess implements Apart {
  readonly #child: ReturnType<ChildProcess['spawn']>;
  readonly #waiting = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>();
  #next = 0;
  #ended: EndedError | null = null;
  /** Settled once it can be asked, or has ended. */
  readonly #started: Promise<unknown>;

  constructor(child: ReturnType<ChildProcess['spawn']>) {
    this.#child = child;
    this.#hold(false);
    this.#started = new Promise((resolve, reject) => this.#waiting.set(startedId, { resolve, reject }));
    // Also where nobody waits for it.
    this.#started.catch(() => undefined);
    child.on('message', (message) => {
      const { id, value, error } = message as Answer;
      const asked = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (this.#waiting.size === 0) this.#hold(false);
      if (error === undefined) asked?.resolve(value);
      else asked?.reject(Object.assign(new Error(error.message), { name: error.name }));
    });
    child.on('error', (error) => this.#end(`its process does not start: ${error.message}`));
    child.on('exit', (code, signal) => this.#end(`its process ended with ${signal ?? `code ${code}`}`));
  }

  started(): Promise<unknown> {
    if (this.#waiting.has(startedId)) this.#hold(true);
    return this.#started;
  }

  probe(): ReturnType<Apart['probe']> {
    return this.#ask({ what: 'probe' });
  }

  prove(options: Parameters<Apart['prove']>[0]): ReturnType<Apart['prove']> {
    return this.#ask({ what: 'prove', options });
  }

  compare(
    options: Parameters<Apart['prove']>[0],
    other: Parameters<Apart['compare']>[1],
  ): ReturnType<Apart['compare']> {
    return this.#ask({ what: 'compare', options, other });
  }

  close(): void {
    this.#end('its process was ended');
    this.#child.kill('SIGKILL');
  }

  #ask<T>(question: Unnumbered): Promise<T> {
    if (this.#ended !== null) return Promise.reject(this.#ended);
    return new Promise<T>((resolve, reject) => {
      const id = this.#next++;
      this.#hold(true);
      this.#waiting.set(id, { resolve: resolve as (value: unknown) => void, reject });
      // If the process has just ended, that is the error.
      this.#child.send({ id, ...question } as Question, () => undefined);
    });
  }

  #end(why: string): void {
    this.#ended ??= new EndedError(why);
    for (const { reject } of this.#waiting.values()) reject(this.#ended);
    this.#waiting.clear();
    this.#hold(false);
  }

  /** Whether the program lives on for this process: only as long as an answer is awaited. */
  #hold(held: boolean): void {
    const { channel } = this.#child;
    if (held) {
      this.#child.ref();
      channel?.ref();
    } else {
      this.#child.unref();
      channel?.unref();
    }
  }
}

/** The processes of this machine; `other` is another program than the one that lies beside this file, for tests. */
export function processesWith(other: string | null): Processes | null {
  const [spawner, fs, modules, os, urls] = [
    part<ChildProcess>('child_process'),
    part<Files>('fs'),
    part<Modules>('module'),
    part<System>('os'),
    part<Urls>('url'),
  ];
  const { electron, bun, deno } = (host?.versions ?? {}) as Record<string, string | undefined>;
  if (!fs || !spawner || electron !== undefined || bun !== undefined || deno !== undefined) return null;
  let program: string;
  try {
    program = other ?? urls.fileURLToPath(new URL('./asked.js', import.meta.url));
    // In a bundle it is not there.
    if (!fs.existsSync(program)) return null;
  } catch {
    return null;
  }
  const near = modules.createRequire(urls.pathToFileURL(program));
  const find = (specifier: string): string | null => {
    try {
      return near.resolve(specifier);
    } catch {
      return null;
    }
  };
  const version = (specifier: string): string => {
    const file = find(`${specifier}/package.json`);
    if (file === null) return '';
    const { mtimeMs } = fs.statSync(find(specifier) ?? file);
    return `${specifier} ${(JSON.parse(fs.readFileSync(file, 'utf8')) as { version?: string }).version} ${Math.round(mtimeMs)}`;
  };
  let facts: string | null = null;
  return {
    memoryBytes: os.totalmem(),
    // Also where its files are not: then it says so itself.
    has: (specifier) => (find(`${specifier}/package.json`) ?? find(specifier)) !== null,
    fingerprint: async ({ specifier, name }) => {
      facts ??= machineFacts(fs, os);
      return [name, version(specifier), version('@polygrad/core'), facts].join('\n');
    },
    open: ({ specifier, name }: Asked) => {
      try {
        const flags = host!.execArgv.filter((word) => passed.test(word));
        const child = spawner.spawn(host!.execPath, [...flags, program, specifier, name], {
          stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
          windowsHide: true,
        });
        return new AskedProcess(child);
      } catch {
        return null;
      }
    },
  };
}

export const processes: Processes | null = processesWith(null);

/** Node's console shows the report as its table. */
export const showReport = (report: DetectionReport): DetectionReport =>
  showAs(report, (rows) => [...rows], formatReport);
