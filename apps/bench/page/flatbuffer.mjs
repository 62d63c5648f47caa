/**
 * FlatBuffers, as far as a model needs them (flatbuffers.dev, "FlatBuffers Internals"): tables, vectors, texts. Parents lie before their
 * children, so every offset points forward.
 */

/** Values by the number of their field; undefined for what has its default. */
export const table = (...fields) => ({ kind: 'table', fields });
export const byte = (value) => ({ kind: 'byte', value });
export const int = (value) => ({ kind: 'int', value });
export const float = (value) => ({ kind: 'float', value });
export const ints = (list) => ({ kind: 'vector', list: list.map(int) });
/** A vector of tables or texts. */
export const list = (items) => ({ kind: 'vector', list: items });
export const text = (value) => ({ kind: 'text', bytes: new TextEncoder().encode(value) });
/** Bytes that begin at a multiple of 16, as tensors do. */
export const data = (bytes) => ({ kind: 'data', bytes });

const scalar = (value) => value.kind === 'byte' || value.kind === 'int' || value.kind === 'float';
const upTo = (at, multiple) => Math.ceil(at / multiple) * multiple;

/** Where everything lies: the nodes with `at` (their start) and, for tables, `vtable`; and the length of all. */
function placed(root) {
  const nodes = [];
  const places = new Map();
  const pending = [root];
  let end = 8;
  for (const node of pending) {
    const { kind } = node;
    let at = upTo(end, 4);
    const place = { at };
    if (kind === 'table') {
      place.vtable = at;
      at = place.at = upTo(at + 4 + 2 * node.fields.length, 4);
      // Every field in a word of its own.
      end = at + 4 + 4 * node.fields.length;
      pending.push(...node.fields.filter((value) => value !== undefined && !scalar(value)));
    } else if (kind === 'vector') {
      end = at + 4 + 4 * node.list.length;
      pending.push(...node.list.filter((value) => !scalar(value)));
    } else {
      if (kind === 'data') place.at = upTo(end + 4, 16) - 4;
      end = place.at + 4 + node.bytes.length + 1;
    }
    places.set(node, place);
    nodes.push(node);
  }
  return { nodes, places, length: upTo(end, 4) };
}

/** The bytes of a buffer with this table as its root, and an identifier of four letters. */
export function encode(root, identifier) {
  const { nodes, places, length } = placed(root);
  const bytes = new Uint8Array(length);
  const view = new DataView(bytes.buffer);
  const put = (at, value) => {
    if (value.kind === 'byte') view.setUint8(at, value.value);
    else if (value.kind === 'int') view.setInt32(at, value.value, true);
    else if (value.kind === 'float') view.setFloat32(at, value.value, true);
    else view.setUint32(at, places.get(value).at - at, true);
  };
  put(0, root);
  bytes.set(new TextEncoder().encode(identifier), 4);
  for (const node of nodes) {
    const { at, vtable } = places.get(node);
    if (node.kind === 'table') {
      const { fields } = node;
      view.setInt32(at, at - vtable, true);
      view.setUint16(vtable, 4 + 2 * fields.length, true);
      view.setUint16(vtable + 2, 4 + 4 * fields.length, true);
      fields.forEach((value, i) => {
        if (value === undefined) return;
        view.setUint16(vtable + 4 + 2 * i, 4 + 4 * i, true);
        put(at + 4 + 4 * i, value);
      });
    } else if (node.kind === 'vector') {
      view.setUint32(at, node.list.length, true);
      for (const [i, value] of node.list.entries()) put(at + 4 + 4 * i, value);
    } else {
      view.setUint32(at, node.bytes.length, true);
      bytes.set(node.bytes, at + 4);
    }
  }
  return bytes;
}
