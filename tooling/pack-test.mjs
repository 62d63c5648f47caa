/**
 * Packs every public package as it would be published, and checks the tarballs with publint. npm installs all of them at once, and each is used in an
 * empty project: every entry imports, types resolve, and its small programs in tooling/pack run. Then projects of others (jest, webpack, Vite), in
 * tooling/pack/projects; the page that Vite builds runs in Chromium. What lies in a package, what it says about itself, and the programs of the
 * README as a stranger would run them are checked too. Of packages of binaries for other platforms those are packed whose binaries can be compiled
 * here.
 *
 * Each package has a project of its own, because only there an import that its manifest does not declare fails. They are checked side by side.
 */
import { spawn } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';
import { platformOf } from '../packages/addon/native/platforms.mjs';
import { binaryOf, whyNoBinary } from './binaries.mjs';
import { findChromium } from './browser/chromium.mjs';
import { isJoined, packedExports } from './join.mjs';
import { wrongContents } from './pack/contents.mjs';
import { readmeProblems } from './pack/readme.mjs';
import { problemsOfPage } from './pack/visit.mjs';
import { closingLine, sideBySide } from './running.mjs';
import { root, runPnpm } from './workspace.mjs';

const readJson = (path) => JSON.parse(readFileSync(path, 'utf8'));

/** Minutes after which a command counts as hanging. */
const hangs = 15;

/** Runs a command in `cwd`; resolves with null, or with its output if it fails. */
function failureOf(command, args, cwd) {
  const env = { ...process.env, npm_config_loglevel: 'error' };
  delete env.npm_config_local_prefix;
  delete env.INIT_CWD;
  const shell = process.platform === 'win32' && command === 'npm';
  const options = { cwd, env, shell, stdio: ['ignore', 'pipe', 'pipe'], timeout: hangs * 60_000 };
  return new Promise((resolve) => {
    let said = '';
    const child = spawn(command, args, options);
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text) => {
        said += text;
      });
    child.on('error', (error) => resolve(error.message));
    child.on('close', (status) => resolve(status === 0 ? null : said.trim() || `exit code ${status}`));
  });
}

/** Removes compiled files whose source is gone, and maps that earlier builds wrote, which would otherwise be packed. */
function pruneDist(folder) {
  const dist = join(folder, 'dist');
  if (!existsSync(dist)) return;
  for (const entry of readdirSync(dist, { recursive: true })) {
    const path = String(entry).replaceAll('\\', '/');
    const stem = /^(.*?)(?:\.d\.ts|\.js)(?:\.map)?$/.exec(path)?.[1];
    if (stem === undefined) continue;
    if (path.endsWith('.js.map') || !existsSync(join(folder, 'src', `${stem}.ts`))) rmSync(join(dist, path));
  }
}

/** True where a package for certain systems or processors (`os` and `cpu` of its manifest) may be installed here. */
const fits = (allowed, here) => allowed === undefined || allowed.includes(here);

/** Public packages: `{ folder, manifest, here }`, the last true for those that can be installed here. */
function publicPackages() {
  return readdirSync(join(root, 'packages'))
    .map((name) => join(root, 'packages', name))
    .filter((folder) => existsSync(join(folder, 'package.json')))
    .map((folder) => ({ folder, manifest: readJson(join(folder, 'package.json')) }))
    .filter(({ manifest }) => manifest.private !== true)
    .map((pack) => {
      const { os, cpu } = pack.manifest;
      return { ...pack, here: fits(os, process.platform) && fits(cpu, process.arch) };
    });
}

/** What is wrong with a packed binary of another platform, which cannot be installed here. */
async function problemsOfBinary({ folder, manifest }, tarball, work) {
  const out = join(work, `unpacked-${basename(folder)}`);
  mkdirSync(out);
  const failed = await failureOf('tar', ['-xzf', tarball, '-C', out], work);
  if (failed !== null) return [failed];
  const { name, platform } = binaryOf(folder);
  const found = platformOf(readFileSync(join(out, 'package', `${name}.node`)));
  const problems = wrongContents(join(out, 'package'));
  if (found !== platform) problems.push(`the binary of ${manifest.name} is for ${found}`);
  return problems;
}

/** Names of the modules that an entry with a `*` stands for: of those that are compiled in the folder of a package. */
function modulesOf(folder, path, target) {
  const [before, after] = target.split('*');
  return readdirSync(join(folder, before), { recursive: true })
    .filter((name) => name.endsWith(after) && !/(^|[/\\])joined[/\\]/.test(name))
    .map((name) => path.replace('*', name.slice(0, -after.length).replaceAll('\\', '/')));
}

/** A program that imports every entry of a package; `types` adds a use that needs its declarations. */
function importAll({ folder, manifest }, types) {
  const entries = Object.entries(manifest.exports)
    .filter(([, target]) => typeof target === 'object')
    .flatMap(([path, target]) => (path.includes('*') ? modulesOf(folder, path, target.default) : [path]))
    .map((path) => manifest.name + path.slice(1));
  const lines = entries.map((entry, i) => `import * as m${i} from '${entry}';`);
  const names = entries.map((_, i) => `m${i}`).join(', ');
  const check = `for (const m of [${names}]) if (typeof m !== 'object') throw new Error('not a module');`;
  return `${lines.join('\n')}\n${types ? `export const all: readonly object[] = [${names}];` : check}\n`;
}

/** A program that fails where Node takes an entry from another file than the joined ones. */
function joinedOnly(manifest) {
  const entries = Object.keys(packedExports(manifest)).filter((path) => !/\*|package\.json/.test(path));
  const names = JSON.stringify(entries.map((path) => manifest.name + path.slice(1)));
  return `for (const name of ${names})
  if (!import.meta.resolve(name).includes('/dist/joined/')) throw new Error(\`\${name} is \${import.meta.resolve(name)}\`);
`;
}

/** Has npm install packages and `others` from the registry into one project; returns null or what went wrong. */
async function installAll(tarballs, others, project) {
  emptyProject(project);
  const options = ['--prefer-offline', '--no-audit', '--no-fund', '--ignore-scripts'];
  const failed = await failureOf('npm', ['install', '--prefix', project, ...options, ...tarballs, ...others], project);
  return failed === null ? null : `npm install: ${failed}`;
}

function emptyProject(project) {
  mkdirSync(project);
  writeFileSync(join(project, 'package.json'), JSON.stringify({ name: 'empty', private: true, type: 'module' }));
}

/**
 * Makes a project with `names`, and what they need, as npm laid them out in a project that has all packages: copies, which take a tenth of the time
 * that installing them takes. What no manifest of theirs names is not there; their commands are.
 */
function projectFrom(everything, names, project) {
  emptyProject(project);
  const [from, to] = [everything, project].map((folder) => join(folder, 'node_modules'));
  const copied = new Set();
  const pending = [...names];
  while (pending.length > 0) {
    const name = pending.pop();
    if (copied.has(name)) continue;
    if (!existsSync(join(from, name))) {
      if (names.includes(name)) throw new Error(`${name} is no package that was installed`);
      // Optional ones may not be there.
      continue;
    }
    copied.add(name);
    cpSync(join(from, name), join(to, name), { recursive: true });
    const { dependencies, peerDependencies, optionalDependencies, bin } = readJson(join(from, name, 'package.json'));
    pending.push(...Object.keys({ ...dependencies, ...peerDependencies, ...optionalDependencies }));
    const commands = typeof bin === 'object' ? Object.keys(bin) : bin === undefined ? [] : [basename(name)];
    for (const file of commands.flatMap((command) => [command, `${command}.cmd`, `${command}.ps1`])) {
      const [link, copy] = [from, to].map((folder) => join(folder, '.bin', file));
      if (existsSync(link)) cpSync(link, copy, { verbatimSymlinks: true });
    }
  }
}

/** Packages that are installed beside a package for its program, which does not depend on them. */
const beside = { core: ['@polygrad/testing'], nn: ['@polygrad/testing'], polygrad: ['@polygrad/auto-detect'] };

async function problemsOf(pack, everything, work) {
  const { manifest } = pack;
  const short = manifest.name.split('/').at(-1);
  const project = join(work, short);
  projectFrom(everything, [manifest.name, ...(beside[short] ?? [])], project);
  const problems = wrongContents(join(project, 'node_modules', manifest.name));
  const attempt = (what, failure) => failure !== null && problems.push(`${what}: ${failure}`);

  writeFileSync(join(project, 'entries.mjs'), importAll(pack, false));
  attempt('importing the entries', await failureOf(process.execPath, ['entries.mjs'], project));

  if (isJoined(manifest)) {
    writeFileSync(join(project, 'joined.mjs'), joinedOnly(manifest));
    attempt('the files joined for Node', await failureOf(process.execPath, ['joined.mjs'], project));
  }

  writeFileSync(join(project, 'entries.ts'), importAll(pack, true));
  const tsc = join(root, 'node_modules/typescript/bin/tsc');
  // A program for Node, which has no DOM, and a page, as bundlers find modules. Declarations are checked too, but for those of the language and the
  // DOM: half of the time.
  const node = ['ES2022', 'node', '--typeRoots', join(root, 'node_modules/@types')];
  for (const [words, module, moduleResolution, [lib, ...types]] of [
    ['NodeNext', 'NodeNext', 'NodeNext', node],
    ['Bundler', 'ESNext', 'Bundler', ['ES2022,DOM', '']],
  ]) {
    const options = [
      '--ignoreConfig',
      '--noEmit',
      '--strict',
      '--skipLibCheck',
      'false',
      '--skipDefaultLibCheck',
      'true',
    ];
    options.push('--target', 'ES2022', '--lib', lib, '--types', ...types);
    options.push('--module', module, '--moduleResolution', moduleResolution, 'entries.ts');
    attempt(`types (${words})`, await failureOf(process.execPath, [tsc, ...options], project));
  }

  // Programs to run, and to type-check: those that begin with `// fails: TEXT` are refused with that text. engines.mjs is what some import.
  cpSync(join(root, 'tooling/pack/engines.mjs'), join(project, 'engines.mjs'));
  for (const name of readdirSync(join(root, 'tooling/pack')).filter((file) => file.startsWith(`${short}.`))) {
    const program = readFileSync(join(root, 'tooling/pack', name), 'utf8');
    writeFileSync(join(project, name), program);
    if (name.endsWith('.mjs')) attempt(name, await failureOf(process.execPath, [name], project));
    if (!name.endsWith('.ts')) continue;
    const wanted = /^\/\/ fails: (.*)$/m.exec(program)?.[1];
    for (const [module, moduleResolution] of [
      ['NodeNext', 'NodeNext'],
      ['ESNext', 'Bundler'],
    ]) {
      const options = [
        '--ignoreConfig',
        '--noEmit',
        '--strict',
        '--target',
        'ES2022',
        '--lib',
        'ES2022,DOM',
        '--types',
        '',
      ];
      options.push('--module', module, '--moduleResolution', moduleResolution, name);
      const failure = await failureOf(process.execPath, [tsc, ...options], project);
      if (wanted === undefined) attempt(`types of ${name} (${module})`, failure);
      else if (!failure?.includes(wanted))
        problems.push(`types of ${name} (${module}): not refused with '${wanted}': ${failure}`);
    }
  }
  return problems;
}

/** Projects of others with tools of theirs: their folders in tooling/pack/projects, and what `project.json` says. */
function projectsOfOthers() {
  const below = join(root, 'tooling/pack/projects');
  return readdirSync(below).map((name) => ({
    name,
    source: join(below, name),
    ...readJson(join(below, name, 'project.json')),
  }));
}

/** What a project needs from the registry: what it says, and the tools in the manifest of one of the repository. */
function registryNeeds({ install, folder }, byName) {
  const { devDependencies = {} } = folder === undefined ? {} : readJson(join(root, folder, 'package.json'));
  const tools = Object.entries(devDependencies).filter(([name]) => !byName.has(name));
  return [...install, ...tools.map(([name, version]) => `${name}@${version}`)];
}

/**
 * Runs what a project of others names: files, or a tool of this repository with arguments, in a copy of it that finds what npm installed. Returns what
 * went wrong, and the folder of the page that was built, where there is one. `folder` names a folder of the repository that is a project of its own:
 * its copy keeps its manifest.
 */
async function problemsOfProject({ name, source, run, tool, page, folder }, everything, work) {
  const project = join(work, `project-${name}`);
  const isOwn = (path) => !/[/\\](node_modules|dist)$/.test(path);
  cpSync(folder === undefined ? source : join(root, folder), project, { recursive: true, filter: isOwn });
  const manifest = JSON.stringify({ name: 'theirs', private: true, type: 'module' });
  if (folder === undefined) writeFileSync(join(project, 'package.json'), manifest);
  symlinkSync(join(everything, 'node_modules'), join(project, 'node_modules'), 'junction');
  const program =
    tool === undefined
      ? []
      : [join(root, 'node_modules', tool, readJson(join(root, 'node_modules', tool, 'package.json')).bin[tool])];
  const problems = [];
  for (const args of run) {
    const failure = await failureOf(process.execPath, [...program, ...args], project);
    if (failure !== null) problems.push(failure);
  }
  return { problems, built: page === undefined || problems.length > 0 ? undefined : join(project, page) };
}

/** What is wrong with the page of a project in Chromium; null where there is no Chromium, and none is required. */
async function problemsInChromium(name, folder) {
  const chromium = findChromium();
  if (chromium !== null) {
    const { problemOf } = await import(pathToFileURL(join(root, 'tooling/pack/projects', name, 'visit.mjs')).href);
    return problemsOfPage(chromium, folder, problemOf);
  }
  const required = (process.env.POLYGRAD_REQUIRE ?? '').split(',').includes('browser');
  return required ? ['POLYGRAD_REQUIRE names browser, but there is no Chromium here'] : null;
}

/** Runs the whole check; returns `{ passed, failed, skipped }` counted in packages and projects, and prints one line for each. */
async function packTest() {
  // Of other platforms, packages whose binaries can be made here are packed, and the others are named.
  const everything = publicPackages();
  const missing = new Map(everything.filter(({ here }) => !here).map((pack) => [pack, whyNoBinary(pack.folder)]));
  const others = everything.filter((pack) => missing.get(pack) === null);
  const packages = everything.filter(({ here }) => here);
  const byName = new Map(packages.map((pack) => [pack.manifest.name, pack]));
  const work = mkdtempSync(join(tmpdir(), 'polygrad-pack-'));
  const counts = { passed: 0, failed: 0, skipped: 0 };
  try {
    for (const { folder } of packages) pruneDist(folder);
    const packed = [...packages, ...others];
    const filters = packed.flatMap(({ manifest }) => ['--filter', manifest.name]);
    if (runPnpm(['-r', ...filters, 'pack', '--pack-destination', work], { quiet: true }) !== 0)
      return { ...counts, failed: packages.length };
    const tarballs = new Map(
      packed.map(({ manifest: { name, version } }) => [
        name,
        join(work, `${name.replace('@', '').replace('/', '-')}-${version}.tgz`),
      ]),
    );
    const tell = (what, problems, why = 'there is none here') => {
      if (problems === null) {
        counts.skipped++;
        console.log(`skip ${what}: ${why}`);
        return;
      }
      counts[problems.length === 0 ? 'passed' : 'failed']++;
      console.log(`${problems.length === 0 ? 'ok  ' : 'FAIL'} ${what}${problems.map((p) => `\n     ${p}`).join('')}`);
    };
    // npm once: everything that is used below, with what the projects of others take from the registry.
    const projects = projectsOfOthers();
    const everything = join(work, 'everything');
    const needed = new Set(projects.flatMap((project) => registryNeeds(project, byName)));
    const broken = await installAll(
      [...byName.keys()].map((name) => tarballs.get(name)),
      needed,
      everything,
    );
    if (broken !== null) {
      tell('all packages in one project', [broken]);
      return counts;
    }
    const checkPackage = async (pack) => {
      const { name } = pack.manifest;
      const tarball = new Uint8Array(readFileSync(tarballs.get(name))).buffer;
      const { messages, pkg } = await publint({ pack: { tarball }, strict: true });
      const problems = messages
        .filter((message) => message.type !== 'suggestion')
        .map((message) => `publint: ${formatMessage(message, pkg, { color: false })}`);
      problems.push(...(await problemsOf(pack, everything, work)));
      tell(name, problems);
    };
    const checkBinary = async ([pack, why]) => {
      const { name } = pack.manifest;
      const problems = why === null ? await problemsOfBinary(pack, tarballs.get(name), work) : null;
      tell(name, problems, `not packed: ${why}`);
    };
    const checkProject = async (given) => {
      const { name } = given;
      const { problems, built } = await problemsOfProject(given, everything, work);
      tell(`project: ${name}`, problems);
      if (built !== undefined) tell(`project: ${name} in Chromium`, await problemsInChromium(name, built));
    };
    const checkReadme = async () => {
      const make = (names, name) => {
        projectFrom(everything, names, join(work, name));
        return join(work, name);
      };
      tell('programs of README.md', await readmeProblems(make, failureOf));
    };
    const checkPublish = async () => {
      const said = await failureOf('npm', ['publish', '--dry-run'], join(root, 'packages/nn'));
      const refused = said?.includes('[publish] @polygrad/nn would be packed by npm/');
      tell('npm publish is refused', refused ? [] : [`it answered: ${said ?? 'that it would publish'}`]);
    };
    // The longest first, so that none is left alone at the end.
    const tasks = [
      ...projects.map((project) => () => checkProject(project)),
      checkReadme,
      ...packages.map((pack) => () => checkPackage(pack)),
      ...[...missing].map((entry) => () => checkBinary(entry)),
      checkPublish,
    ];
    await sideBySide(tasks, Math.min(4, availableParallelism()));
    return counts;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

const totals = await packTest();
console.log(closingLine(totals));
process.exitCode = totals.failed > 0 ? 1 : 0;
