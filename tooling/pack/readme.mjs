/** The programs of README.md as a stranger runs them: in an empty project, with the packages that the lines above them install. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../workspace.mjs';

/** Sections of a document that install packages: their title, the packages, the first program. */
function sections(text) {
  return text.split(/^## /m).flatMap((part) => {
    const install = /^npm install (?!--save-dev)(.+)$/m.exec(part)?.[1];
    const program = /^```ts\n([\s\S]*?)^```/m.exec(part)?.[1];
    return install === undefined || program === undefined
      ? []
      : [{ title: part.split('\n')[0], names: install.split(' '), program }];
  });
}

/**
 * Problems, as lines. `make` makes a project with packages and returns its folder; `failureOf` runs a command in it and resolves with what it said, or
 * with null where it succeeded.
 */
export async function readmeProblems(make, failureOf) {
  const found = sections(readFileSync(join(root, 'README.md'), 'utf8'));
  if (found.length < 2) return [`${found.length} programs with packages to install are in it, not 2`];
  const problems = [];
  for (const [index, { title, names, program }] of found.entries()) {
    const project = make(names, `readme-${index}`);
    const inPage = /page/.test(title);
    const file = inPage ? 'main.js' : 'train.mjs';
    writeFileSync(join(project, file), program);
    const steps = [['run', [file]]];
    if (inPage) {
      writeFileSync(join(project, 'index.html'), '<script type="module" src="./main.js"></script>\n');
      steps.push(['build the page', [join(root, 'node_modules/vite/bin/vite.js'), 'build', '--logLevel', 'warn']]);
    }
    for (const [what, words] of steps) {
      const said = await failureOf(process.execPath, words, project);
      if (said !== null) problems.push(`${title}: ${what}: ${said}`);
    }
  }
  return problems;
}
