/**
 * What every published package says about itself: where it is kept, where to report, words to find it by, how it is packed; and the links of
 * its documents, which must work on npm. The repository's address stands in one place, the root's package.json.
 *
 * `node tooling/manifests.mjs` says what is wrong, and with --write fills in fields and links.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { pathToFileURL } from 'node:url';
import { isJoined, joinedSideEffects, packedExports } from './join.mjs';
import { root } from './workspace.mjs';

const readJson = (path) => JSON.parse(readFileSync(path, 'utf8'));

/** Words that all packages are found by; each adds its own. */
const common = ['polygrad', 'tensor', 'autograd', 'machine-learning'];
/** Packing by npm would publish `workspace:` ranges, which cannot be installed. */
const guard = 'node ../../tooling/prepack.mjs';

/** Folders of the packages that are published. */
export function publishedFolders(from = root) {
  return readdirSync(join(from, 'packages'))
    .map((name) => `packages/${name}`)
    .filter((folder) => existsSync(join(from, folder, 'package.json')))
    .filter((folder) => readJson(join(from, folder, 'package.json')).private !== true);
}

/** The address of a file of the repository for readers elsewhere. */
const addressOf = (repository, path) => `${repository}/blob/main/${path}`;

/** Fields that follow from where a package lies. */
function fieldsOf(repository, folder) {
  return {
    repository: { type: 'git', url: `git+${repository}.git`, directory: folder },
    homepage: `${repository}/tree/main/${folder}#readme`,
    bugs: { url: `${repository}/issues` },
  };
}

/** The manifest as it should be, its fields in the usual order. */
function complete(manifest, repository, folder) {
  const fields = fieldsOf(repository, folder);
  const keywords = [...new Set([...common, ...(manifest.keywords ?? [])])];
  const { name, version, description, license, scripts = {}, ...rest } = manifest;
  for (const field of ['keywords', ...Object.keys(fields)]) delete rest[field];
  const own = isJoined(manifest) ? withJoined(rest) : rest;
  return { name, version, description, keywords, license, ...fields, ...own, scripts: { ...scripts, prepack: guard } };
}

/** Fields of a package whose modules are joined for Node when it is packed, each where it was. */
function withJoined(rest) {
  const { sideEffects: effects, publishConfig } = rest;
  const kept = Array.isArray(effects) ? { sideEffects: [...new Set([...effects, joinedSideEffects])] } : {};
  return { ...rest, ...kept, publishConfig: { ...publishConfig, exports: packedExports(rest) } };
}

/** Documents that are packed with a package: paths from the root. */
function documentsOf(folder, from) {
  const sources = existsSync(join(from, folder, 'src'))
    ? readdirSync(join(from, folder, 'src'), { recursive: true })
    : [];
  const inSources = sources
    .map((path) => `src/${String(path).split(sep).join('/')}`)
    .filter((path) => path.endsWith('.md'));
  return ['README.md', ...inSources].map((path) => `${folder}/${path}`).filter((path) => existsSync(join(from, path)));
}

/** A document with links out of its package, and to what is not packed, made addresses; and how many there were. */
function withAddresses(document, folder, repository, from) {
  let count = 0;
  const { files } = readJson(join(from, folder, 'package.json'));
  const packed = (path) => path === 'README.md' || files.some((name) => path === name || path.startsWith(`${name}/`));
  const text = readFileSync(join(from, document), 'utf8').replace(
    /\]\(([^)#\s]+)(#[^)]*)?\)/g,
    (link, target, anchor = '') => {
      if (/^[a-z]+:/.test(target)) return link;
      const path = relative(from, resolve(from, dirname(document), target))
        .split(sep)
        .join('/');
      if (path.startsWith(`${folder}/`) && packed(path.slice(folder.length + 1))) return link;
      count++;
      return `](${addressOf(repository, path)}${anchor})`;
    },
  );
  return { text, count };
}

/** What is wrong with a manifest's own fields. */
function wrongFields(manifest, repository, folder) {
  const wanted = complete(manifest, repository, folder);
  const said = ['keywords', 'repository', 'homepage', 'bugs', 'scripts', 'sideEffects', 'publishConfig']
    .filter((field) => JSON.stringify(manifest[field]) !== JSON.stringify(wanted[field]))
    .map((field) => `${field} is ${JSON.stringify(manifest[field])}, not ${JSON.stringify(wanted[field])}`);
  if (wanted.keywords.length <= common.length) said.push('keywords has no word of its own');
  for (const field of ['description', 'license', 'engines', 'files'])
    if (manifest[field] === undefined) said.push(`${field} is missing`);
  for (const [name, range] of Object.entries(manifest.peerDependencies ?? {}))
    if (range === 'workspace:*' || /^[\d=]/.test(range)) said.push(`peer ${name} is pinned to ${range}: give a range`);
  return said;
}

/** What is wrong with manifests and links, as lines; with `write`, what can be filled in is. */
export function checkManifests(write = false, from = root) {
  const { repository } = readJson(join(from, 'package.json'));
  return publishedFolders(from).flatMap((folder) => {
    const path = join(from, folder, 'package.json');
    if (write) writeFileSync(path, `${JSON.stringify(complete(readJson(path), repository, folder), null, 2)}\n`);
    const problems = wrongFields(readJson(path), repository, folder).map((text) => `${folder}/package.json: ${text}`);
    for (const document of documentsOf(folder, from)) {
      const { text, count } = withAddresses(document, folder, repository, from);
      if (count === 0) continue;
      if (write) writeFileSync(join(from, document), text);
      else problems.push(`${document}: ${count} links lead out of the package, or to what is not packed`);
    }
    return problems;
  });
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const problems = checkManifests(process.argv.includes('--write'));
  for (const problem of problems) process.stdout.write(`${problem}\n`);
  process.exitCode = problems.length > 0 ? 1 : 0;
}
