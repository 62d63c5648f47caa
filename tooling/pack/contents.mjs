/** What an installed package holds and says about itself: no ranges of the workspace, no tests, no sources twice, links and URLs that work. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, resolve, sep } from 'node:path';

/** `new URL('./file', import.meta.url)` in code; comments are left out, as bundlers do. */
const bundledUrls = /^(?!\s*(?:\/\/|\*)).*?\bnew URL\(\s*['"]([^'"]+)['"],\s*import\.meta\.url\s*\)/gm;

const isFile = (path) => statSync(path, { throwIfNoEntry: false })?.isFile() === true;

/** Problems of the package that lies in `folder`, as lines. */
export function wrongContents(folder) {
  const text = readFileSync(join(folder, 'package.json'), 'utf8');
  const manifest = JSON.parse(text);
  const said = [];
  if (text.includes('workspace:')) said.push('package.json has a workspace: range');
  for (const [name, range] of Object.entries(manifest.peerDependencies ?? {}))
    if (!/^[\^~>]/.test(range)) said.push(`peer ${name} is pinned to ${range}`);
  for (const field of ['description', 'license', 'homepage', 'bugs', 'repository', 'keywords'])
    if (manifest[field] === undefined) said.push(`package.json has no ${field}`);
  const files = readdirSync(folder, { recursive: true })
    .map((path) => String(path).split(sep).join('/'))
    .filter((path) => !path.startsWith('node_modules/'));
  if (!files.includes('LICENSE')) said.push('the licence is not in it');
  for (const path of files) {
    if (/\.test\.[jt]s$|(^|\/)fixtures(\/|$)|\.tsbuildinfo$/.test(path)) said.push(`${path} is for tests`);
    // What runs is the source less its types, comments included: a debugger needs no map to it.
    if (/\.js\.map$/.test(path)) said.push(`${path}: sources are shipped already`);
    if (/\.js$/.test(path) && /^\/\/# sourceMappingURL/m.test(readFileSync(join(folder, path), 'utf8')))
      said.push(`${path} names a map`);
    // Bundlers take such a URL for a file to bring along: Turbopack fails where there is none. No program bundles what is for tests.
    if (/\.js$/.test(path) && !path.includes('/testing/'))
      for (const [, target] of readFileSync(join(folder, path), 'utf8').matchAll(bundledUrls))
        if (!isFile(resolve(folder, dirname(path), target)))
          said.push(`${path} names ${target} beside itself, which is no file of it`);
    if (path.endsWith('.md'))
      for (const [, target] of readFileSync(join(folder, path), 'utf8').matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)) {
        if (/^[a-z]+:/.test(target)) continue;
        const file = resolve(folder, dirname(path), target);
        if (!file.startsWith(folder) || !existsSync(file)) said.push(`${path} links to ${target}, which is not in it`);
      }
  }
  // Declarations lead to the sources.
  const map = files.find((path) => path.endsWith('.d.ts.map'));
  if (map !== undefined) {
    const { sources } = JSON.parse(readFileSync(join(folder, map), 'utf8'));
    if (!existsSync(join(folder, dirname(map), sources[0])))
      said.push(`${map} leads to ${sources[0]}, which is not in it`);
  }
  return said;
}
