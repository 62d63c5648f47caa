/** What the type checker and editors know of methods: the parameters of their functions, and the functions' documentation. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { API, type Checker, type Symbol as Name } from 'typescript/unstable/sync';
import { afterAll, beforeAll, expect, it } from 'vitest';

const folder = fileURLToPath(new URL('../..', import.meta.url));

let api: API;
let checker: Checker;
/** Functions of ops/operations.ts and members of Tensor, by name. */
let functions: ReadonlyMap<string, Name>;
let members: ReadonlyMap<string, Name>;

/** What the last word of `text` names, where that first stands in a file of src. */
function named(path: string, text: string): Name {
  const file = `${folder}src/${path}`;
  const end = readFileSync(file, 'utf8').indexOf(text) + text.length;
  return checker.getSymbolAtPosition(file, end - 1) as Name;
}

const byName = (names: readonly Name[]): ReadonlyMap<string, Name> => new Map(names.map((name) => [name.name, name]));
const noTruncation = 1;
const typeOf = (name: Name | undefined): string =>
  name === undefined
    ? 'missing'
    : checker.typeToString(checker.getTypeOfSymbol(name)!, undefined, noTruncation).replaceAll('Tensor<any>', 'Tensor');
/** Without what depends on how a parameter is written: one with a default has no `| undefined`. */
const plain = (type: string): string => type.replaceAll(/ \| undefined|[()]/g, '');

beforeAll(() => {
  api = new API({ cwd: folder });
  const [project] = api.updateSnapshot({ openProjects: [`${folder}tsconfig.json`] }).getProjects();
  checker = project!.checker;
  const operations = checker.getAliasedSymbol(named('methods/own-methods.ts', 'import type * as operations'));
  const [variable, func] = [2, 16];
  functions = byName(checker.getExportsOfModule(operations).filter(({ flags }) => (flags & (variable | func)) !== 0));
  members = byName(
    checker.getPropertiesOfType(checker.getDeclaredTypeOfSymbol(named('tensor/types.ts', 'export interface Tensor'))),
  );
});
afterAll(() => api.close());

it('every operation is a method without its first parameter, overloads included', () => {
  expect(functions.size).toBeGreaterThan(220);
  // Its tensor comes second.
  const differing = ['polygamma'];
  const expected = [...functions].map(([name, f]) => [
    name,
    plain(typeOf(f).replaceAll(/\(\w+: (?:Tensor|TensorLike|IndexLike)(?:, |(?=\)))/g, '(')),
  ]);
  const found = [...functions.keys()].map((name) => [
    name,
    // The type checker gives rest parameters a name of its own.
    plain(typeOf(members.get(name)).replace('...rest:', '...specs:')),
  ]);
  const comparable = (list: string[][]): string[][] => list.filter(([name]) => !differing.includes(name as string));
  expect(comparable(found)).toEqual(comparable(expected));
  expect(typeOf(members.get('polygamma'))).toBe('(order: number) => Tensor');
});

it('editors show the documentation of the function with the method', () => {
  const silent = [...functions.keys()].filter((name) => members.get(name)!.getDocumentationComment(checker) === '');
  expect(silent).toEqual([]);
  expect(members.get('softmax')!.getDocumentationComment(checker)).toContain('exp(x) / sum(exp(x))');
  expect(
    members
      .get('softmax')!
      .getJsDocTags(checker)
      .map(({ name }) => name),
  ).toContain('example');
  expect(members.get('sort')!.getDocumentationComment(checker)).toContain('in order along an axis');
});
