/**
 * Import rules of the house (docs/architecture.md), checked over the sources of packages and apps.
 *
 * Reads import statements with a small scanner, not a parser: TypeScript sources keep them at the top and simple.
 * Exits with 1 and one line per violation, or prints how many files are in order.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { compilerFile } from './workspace.mjs';

/** Files that may pass names on beside entry points: the one list of the families of operations. */
const lists = new Set(['packages/core/src/ops/operations.ts']);

/** The packages whose rooms are the stack of docs/architecture.md. */
const roomed = new Set(['compiler', 'core']);

/** Packages whose sources also run in browsers: node: modules only through a dynamic import. */
const portable = new Set([
  'compiler',
  'core',
  'backend-cpu',
  'backend-webgpu',
  'nn',
  'emit-c',
  'emit-ptx',
  'emit-machine',
  'auto-detect',
]);

const isTest = (path) => /\.(test|bench)\.ts$/.test(path) || /(^|\/)(test|fixtures)\//.test(path);
const isBackend = (specifier) => /^@polygrad\/backend-[a-z]+/.test(specifier);
const mayImportBackends = (path) =>
  path.startsWith('apps/') ||
  path.startsWith('packages/auto-detect/') ||
  /^packages\/conformance\/src\/(cli|engines)/.test(path) ||
  isTest(path);

/** All files below `folder` with one of the endings, as paths relative to `root` with forward slashes. */
export function filesBelow(root, folder, endings) {
  const found = [];
  const pending = [folder];
  while (pending.length > 0) {
    const at = pending.pop();
    if (!existsSync(join(root, at))) continue;
    for (const entry of readdirSync(join(root, at), { withFileTypes: true })) {
      if (['node_modules', 'dist', '.turbo', '.cache'].includes(entry.name)) continue;
      const path = `${at}/${entry.name}`;
      if (entry.isDirectory()) pending.push(path);
      else if (endings.some((ending) => entry.name.endsWith(ending))) found.push(path);
    }
  }
  return found.sort();
}

/** Replaces comments by blanks, so that an import in an example is not taken for one. Keeps line numbers. */
function withoutComments(source) {
  // Strings first in the alternation: what looks like a comment inside one stays.
  return source.replace(
    /'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`|\/\*[\s\S]*?\*\/|\/\/[^\n]*/g,
    (text) => (text.startsWith('/') ? text.replace(/[^\n]/g, ' ') : text),
  );
}

/**
 * Import and export-from statements and dynamic imports of one source text.
 * `value` is false for statements that type checking alone needs (`import type`); `names` are those between braces.
 */
export function importsOf(source) {
  const code = withoutComments(source);
  const found = [];
  const add = (match, specifier, kind, value, names = []) =>
    found.push({
      specifier,
      kind,
      value,
      names,
      line: code.slice(0, match.index + match[0].length).split('\n').length,
    });
  for (const match of code.matchAll(/(?:^|;)[ \t]*(import|export)\b([^;'"`]*?)\bfrom\s*(['"])([^'"\n]+)\3/gm)) {
    const names = match[2].trim();
    const allTypes =
      /^\{[^}]*\}$/.test(names) &&
      names
        .slice(1, -1)
        .split(',')
        .every((n) => /^\s*(type\s|$)/.test(n));
    const listed = (/\{([^}]*)\}/.exec(names)?.[1] ?? '')
      .split(',')
      .map((n) => n.trim().replace(/^type\s+|\s+as\s.*/g, ''));
    add(match, match[4], match[1], !/^type\b/.test(names) && !allTypes, listed.filter(Boolean));
  }
  for (const match of code.matchAll(/(?:^|;)[ \t]*import\s*(['"])([^'"\n]+)\1/gm)) add(match, match[2], 'import', true);
  for (const match of code.matchAll(/\bimport\s*\(\s*(['"])([^'"\n]+)\1/g)) add(match, match[2], 'dynamic', true);
  return found;
}

/** True for a file that does nothing but pass names of other files on. */
export function isBarrel(source) {
  const rest = withoutComments(source)
    .replace(/^\s*(?:import|export)\b[^;'"]*?\bfrom\s*(['"])[^'"]+\1\s*;?/gm, '')
    .trim();
  return rest === '' && importsOf(source).some((i) => i.kind === 'export');
}

/** Cycles in a graph given as node -> successors: one list of nodes for each strongly connected part (Tarjan). */
export function cyclesOf(graph) {
  const index = new Map();
  const low = new Map();
  const stack = [];
  const onStack = new Set();
  const cycles = [];
  for (const start of graph.keys()) {
    if (index.has(start)) continue;
    const work = [{ node: start, next: 0 }];
    while (work.length > 0) {
      const frame = work.at(-1);
      const { node } = frame;
      if (frame.next === 0) {
        index.set(node, index.size);
        low.set(node, index.get(node));
        stack.push(node);
        onStack.add(node);
      }
      const target = (graph.get(node) ?? [])[frame.next++];
      if (target !== undefined) {
        if (!index.has(target)) work.push({ node: target, next: 0 });
        else if (onStack.has(target)) low.set(node, Math.min(low.get(node), index.get(target)));
        continue;
      }
      work.pop();
      if (work.length > 0) low.set(work.at(-1).node, Math.min(low.get(work.at(-1).node), low.get(node)));
      if (low.get(node) !== index.get(node)) continue;
      const part = stack.splice(stack.indexOf(node));
      for (const member of part) onStack.delete(member);
      if (part.length > 1 || (graph.get(node) ?? []).includes(node)) cycles.push(part.reverse());
    }
  }
  return cycles;
}

/**
 * The rooms of core and of its compiler, and what each may import, from the table of docs/architecture.md: `| \`room/\` | what it is | rooms |`, rooms that are
 * imported first.
 *
 * @returns a list of rooms by name, in the table's order, and what is wrong with the table itself
 */
function roomsOf(text) {
  const rooms = new Map();
  const wrong = [];
  for (const [, name, imports] of text.matchAll(/^\|\s*`([\w-]+)\/`\s*\|[^|]*\|([^|]*)\|\s*$/gm)) {
    const listed = imports.split(',').map((word) => word.trim());
    const allowed = listed.filter((word) => word !== 'nothing');
    for (const other of allowed)
      if (!rooms.has(other)) wrong.push(`${name} imports ${other}, which does not stand above it`);
    rooms.set(name, new Set(allowed));
  }
  return { rooms, wrong };
}

/** What a package says about itself, as the rules need it. */
function readPackage(root, folder) {
  const manifest = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'));
  const entries = new Set();
  // What is meant to be copied out of the repository (apps/backend-template) knows no condition of it.
  for (const target of Object.values(manifest.exports ?? {})) {
    const source = typeof target === 'object' ? target['@polygrad/source'] : undefined;
    if (source !== undefined) entries.add(`${folder}/${source.replace(/^\.\//, '')}`);
  }
  const runtime = { ...manifest.dependencies, ...manifest.peerDependencies, ...manifest.optionalDependencies };
  return {
    name: manifest.name,
    folder,
    entries,
    runtime: new Set(Object.keys(runtime)),
    imports: new Set(Object.keys(manifest.imports ?? {})),
  };
}

/** The folder below `src` that a file is in; the file itself where it is in none. */
const roomOf = (path) => path.split('/').slice(0, 4).join('/');
const nameOf = (room) => room.split('/')[3];

/** A file that is checked, and where what is found goes. */
class CheckedFile {
  constructor(tree, self, path) {
    Object.assign(this, { tree, self, path });
    this.source = readFileSync(join(tree.root, path), 'utf8');
    this.isTest = isTest(path);
    this.short = self.folder.split('/')[1];
    /** Files of the package that it needs, from the start or later. */
    this.edges = [];
  }

  say(line, what) {
    this.tree.violations.push(`${this.path}:${line} ${what}`);
  }

  check() {
    const { self, path, source } = this;
    if (isBarrel(source) && !self.entries.has(path) && !lists.has(path))
      this.say(1, 'only passes names on: import from where they are defined');
    for (const found of importsOf(source)) {
      if (found.specifier.startsWith('.')) this.ownFile(found);
      else this.otherPackage(found);
    }
    this.outsideNames();
  }

  /** An import of a file of the same package. */
  ownFile({ specifier, names, line }) {
    const { self, path, tree } = this;
    const target = relative(tree.root, resolve(tree.root, dirname(path), specifier))
      .split(sep)
      .join('/');
    if (!target.startsWith(`${self.folder}/`)) {
      this.say(line, `imports ${specifier}, outside its package: use the package's name`);
      return;
    }
    if (!existsSync(join(tree.root, target))) this.say(line, `imports ${specifier}, which does not exist`);
    this.edges.push(target);
    if (self.entries.has(target) && !self.entries.has(path) && !this.isTest && !this.defines(target, names))
      this.say(line, `imports the package's entry ${specifier}: import from where the names are defined`);
    if (this.isTest) return;
    const [from, to] = [path, target].map(roomOf);
    if (from === to) return;
    if (!tree.roomGraph.has(from)) tree.roomGraph.set(from, []);
    tree.roomGraph.get(from).push(to);
    if (roomed.has(this.short)) this.checkRooms(nameOf(from), nameOf(to), specifier, line);
  }

  /** True if a file defines all of some names itself. */
  defines(target, names) {
    const file = join(this.tree.root, target);
    if (names.length === 0 || !existsSync(file)) return false;
    const source = withoutComments(readFileSync(file, 'utf8'));
    return names.every((name) =>
      new RegExp(`^export (?:async )?(?:function|const|class|interface|type) ${name}\\b`, 'm').test(source),
    );
  }

  checkRooms(from, to, specifier, line) {
    const allowed = this.tree.rooms.get(from);
    if (allowed !== undefined && !allowed.has(to))
      this.say(line, `${from} must not import ${to} (${specifier}): see the rooms of docs/architecture.md`);
  }

  /** An import by a name: of another package, of Node, or of a file that differs between Node and browsers. */
  otherPackage({ specifier, kind, value, line }) {
    const { self, short, path } = this;
    const isLoaded = value && kind !== 'dynamic';
    if (isBackend(specifier) && !mayImportBackends(path))
      this.say(line, `imports ${specifier}: only apps, tests, the conformance command and auto-detect know backends`);
    if (isBackend(specifier) && isLoaded && short === 'auto-detect' && !this.isTest)
      this.say(line, `imports ${specifier} statically: auto-detect loads backends dynamically`);
    if (this.isTest) return;
    if (specifier.startsWith('node:')) {
      if (portable.has(short) && isLoaded)
        this.say(line, `imports ${specifier} statically, but runs in browsers: use a dynamic import`);
      return;
    }
    const ofCompiler = compilerFile(specifier);
    if (ofCompiler !== undefined) this.fileOfCompiler(ofCompiler, specifier, line);
    if (self.imports.has(specifier)) return;
    const parts = specifier.split('/');
    const name = parts.slice(0, specifier.startsWith('@') ? 2 : 1).join('/');
    if (name !== self.name && !self.runtime.has(name))
      this.say(line, `imports ${name}, which package.json does not list`);
    if (short.startsWith('emit-') && !/^@polygrad\/core\/kernel(\/emitters)?$/.test(specifier))
      this.say(line, `imports ${specifier}: emitters know the kernel IR and nothing else`);
    if (name === self.name) this.say(line, `imports its own package by name (${specifier}): use a relative path`);
  }

  fileOfCompiler(file, specifier, line) {
    if (!existsSync(join(this.tree.root, `packages/compiler/src/${file}.ts`)))
      this.say(line, `imports ${specifier}, which does not exist`);
    if (this.short === 'core') this.checkRooms(nameOf(this.path), file.split('/')[0], specifier, line);
    else this.say(line, `imports ${specifier}: the compiler is core's own, see the entries of @polygrad/core`);
  }

  /** Paths in texts that lead out of the repository. */
  outsideNames() {
    const { path, source, self, tree } = this;
    for (const match of withoutComments(source).matchAll(/(['"`])((?:\.\.\/)+[^'"`\n]*)\1/g)) {
      const outside = [dirname(path), self.folder, '.'].some((base) =>
        relative(tree.root, resolve(tree.root, base, match[2])).startsWith(`..${sep}shared`),
      );
      if (outside)
        this.say(source.slice(0, match.index).split('\n').length, `names ${match[2]}, outside the repository`);
    }
  }
}

/** Folders of packages and apps. */
function packageFolders(root) {
  return ['packages', 'apps'].flatMap((group) =>
    existsSync(join(root, group))
      ? readdirSync(join(root, group))
          .map((name) => `${group}/${name}`)
          .filter((folder) => existsSync(join(root, folder, 'package.json')))
      : [],
  );
}

/** Cycles of files and of rooms, and rooms that the table lacks. */
function checkGraphs({ violations, rooms, roomGraph }, fileGraph) {
  const known = new Set(
    [...roomGraph.keys()]
      .filter((room) => roomed.has(room.split('/')[1]) && room.startsWith('packages/') && !room.endsWith('.ts'))
      .map(nameOf),
  );
  if (rooms.size > 0)
    for (const room of known)
      if (!rooms.has(room)) violations.push(`docs/architecture.md: no room ${room} in the table`);
  for (const cycle of cyclesOf(roomGraph))
    if (!cycle.every((room) => room.endsWith('.ts')))
      violations.push(`cycle of rooms, types included: ${cycle.join(' -> ')}`);
  const within = ([path, edges]) => [path, edges.filter((target) => fileGraph.has(target))];
  for (const cycle of cyclesOf(new Map([...fileGraph].map(within))))
    violations.push(`import cycle, types and dynamic imports included: ${cycle.join(' -> ')}`);
}

/** Violations of the rules below `root`: `{ violations: string[], files: number }`. */
export function checkImports(root) {
  const table = join(root, 'docs/architecture.md');
  const { rooms, wrong } = roomsOf(existsSync(table) ? readFileSync(table, 'utf8') : '');
  const violations = wrong.map((what) => `docs/architecture.md: ${what}`);
  const tree = { root, rooms, violations, roomGraph: new Map() };
  const fileGraph = new Map();
  let files = 0;
  for (const folder of packageFolders(root)) {
    const self = readPackage(root, folder);
    for (const path of filesBelow(root, `${folder}/src`, ['.ts'])) {
      files++;
      const file = new CheckedFile(tree, self, path);
      file.check();
      if (!file.isTest) fileGraph.set(path, file.edges);
    }
  }
  checkGraphs(tree, fileGraph);
  const lock = join(root, 'pnpm-lock.yaml');
  if (existsSync(lock) && /https?:\/\//.test(readFileSync(lock, 'utf8')))
    violations.push('pnpm-lock.yaml holds download addresses: make it again with the default settings');
  return { violations, files };
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { violations, files } = checkImports(dirname(dirname(fileURLToPath(import.meta.url))));
  for (const violation of violations) process.stdout.write(`${violation}\n`);
  if (violations.length === 0) process.stdout.write(`import rules hold in ${files} files\n`);
  process.exitCode = violations.length > 0 ? 1 : 0;
}
