//! Tensors of a checkpoint that torch saved: an archive of a pickle, which says
//! where each tensor lies, and of the tensors' numbers.
//!
//! A pickle is a program for a small stack machine, and Python's own reader lets it
//! call anything. This one knows the few operations that torch writes and calls
//! nothing: a name is a name, and a call gives a tensor's place, an empty dictionary
//! or a value without contents. Operations and names that a checkpoint does not need
//! are refused by name.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use memory::Precision;

use crate::reader::HeaderReader;
use crate::{TensorInfo, zip};

/// Real pickles of a speaker model have 10 to 100 kB.
const MOST_PICKLE_BYTES: usize = 1 << 20;
/// Values that a pickle may make, each some tens of bytes.
const MOST_VALUES: usize = 400_000;
const MOST_DIMENSIONS: usize = 8;

/// The tensors of a checkpoint by name: those of its `state_dict`, or of the whole
/// where there is none. `file` is the number of the file among the model's files.
/// The error is a reason for [`crate::Error::Invalid`].
pub(crate) fn index(bytes: &[u8], file: usize) -> Result<HashMap<String, TensorInfo>, String> {
    let entries = zip::entries(bytes)?;
    let pickles = entries.keys().filter_map(|name| name.strip_suffix("data.pkl"));
    let [prefix] = pickles.collect::<Vec<_>>()[..] else {
        return Err("it is no checkpoint of torch: there is not one data.pkl in it".into());
    };
    let entry = |name: &str| entries.get(&format!("{prefix}{name}")).cloned();
    if entry("byteorder").is_some_and(|range| &bytes[range] != b"little") {
        return Err("its numbers are in the byte order of another kind of computer".into());
    }
    let pickle = &bytes[entry("data.pkl").unwrap_or_default()];
    if pickle.len() > MOST_PICKLE_BYTES {
        return Err(format!("its data.pkl has {} bytes, more than any checkpoint needs", pickle.len()));
    }
    let mut machine = Machine::default();
    let root = machine.run(pickle)?;
    let tensors = machine.item(root, "state_dict").unwrap_or(root);
    let Value::Dictionary(items) = &machine.values[tensors] else {
        return Err("its tensors are not in a dictionary".into());
    };
    let mut index = HashMap::new();
    for (key, value) in items {
        let (Value::Text(name), Value::Tensor(tensor)) = (&machine.values[*key], &machine.values[*value])
        else {
            continue;
        };
        let storage = entry(&format!("data/{}", tensor.storage.key));
        let storage = storage.ok_or_else(|| format!("the numbers of the tensor {name} are missing"))?;
        let info = tensor.info(&storage, file).map_err(|reason| format!("the tensor {name} {reason}"))?;
        index.insert(name.clone(), info);
    }
    if index.is_empty() {
        return Err("there are no tensors in it".into());
    }
    Ok(index)
}

/// The numbers of one or several tensors.
#[derive(Debug)]
struct Storage {
    /// Its file in the archive's folder `data`.
    key: String,
    /// Bytes of a number, and how it is stored.
    width: u64,
    stored: Result<Precision, String>,
}

#[derive(Debug)]
struct PlacedTensor {
    storage: Rc<Storage>,
    /// In numbers, from the start of the storage on.
    offset: u64,
    shape: Vec<u64>,
    strides: Vec<u64>,
}

impl PlacedTensor {
    fn info(&self, storage: &Range<usize>, file: usize) -> Result<TensorInfo, String> {
        let mut count = 1u64;
        for (size, stride) in self.shape.iter().zip(&self.strides).rev() {
            if *stride != count && *size > 1 {
                return Err("is not stored row after row".into());
            }
            count = count.checked_mul((*size).max(1)).ok_or("is too large")?;
        }
        if self.shape.contains(&0) {
            return Err("has no numbers".into());
        }
        let bytes = |numbers: u64| numbers.checked_mul(self.storage.width);
        let range = bytes(self.offset).zip(bytes(count)).and_then(|(start, length)| {
            let end = start.checked_add(length)?;
            (end <= storage.len() as u64).then_some(start as usize..end as usize)
        });
        let range = range.ok_or("ends beyond its numbers")?;
        let bytes = storage.start + range.start..storage.start + range.end;
        Ok(TensorInfo::new(file, bytes, self.shape.clone(), self.storage.stored.clone()))
    }
}

/// A value by its number in [`Machine::values`]: nothing is nested, so that no depth
/// of a hostile pickle costs stack.
type Id = usize;

#[derive(Debug)]
enum Value {
    Nothing,
    /// Of an object that a checkpoint may have and that is not needed.
    Opaque,
    Number(i64),
    Text(String),
    Name(String),
    List(Vec<Id>),
    Dictionary(Vec<(Id, Id)>),
    // Shared, so that no repetition in a hostile pickle costs a copy.
    Storage(Rc<Storage>),
    Tensor(Rc<PlacedTensor>),
}

#[derive(Default)]
struct Machine {
    values: Vec<Value>,
    stack: Vec<Id>,
    /// Heights of the stack.
    marks: Vec<usize>,
    memo: HashMap<u32, Id>,
}

/// Objects of a training run that are beside the tensors, by how their names begin.
const HARMLESS: [&str; 9] = [
    "collections.",
    "lightning.",
    "lightning_fabric.",
    "numpy.",
    "omegaconf.",
    "pyannote.",
    "pytorch_lightning.",
    "torch.torch_version.",
    "typing.",
];

/// How a type of torch's storages is stored: the bytes of a number.
fn storage_type(name: &str) -> Option<(u64, Result<Precision, String>)> {
    let other = |width, name: &str| Some((width, Err(name.to_owned())));
    match name.strip_prefix("torch.")? {
        "FloatStorage" => Some((4, Ok(Precision::F32))),
        "HalfStorage" => Some((2, Ok(Precision::F16))),
        "BFloat16Storage" => Some((2, Ok(Precision::Bf16))),
        "DoubleStorage" => other(8, "F64"),
        "LongStorage" => other(8, "I64"),
        "IntStorage" => other(4, "I32"),
        "ByteStorage" => other(1, "U8"),
        "BoolStorage" => other(1, "BOOL"),
        _ => None,
    }
}

impl Machine {
    /// Runs the program; the number of the value that it leaves.
    fn run(&mut self, pickle: &[u8]) -> Result<Id, String> {
        let mut code = HeaderReader::new(pickle);
        loop {
            if self.values.len() > MOST_VALUES {
                return Err("its data.pkl makes more values than any checkpoint needs".into());
            }
            let operation = code.bytes(1, "an operation")?[0];
            match operation {
                // PROTO
                0x80 => {
                    code.bytes(1, "a version")?;
                }
                b'.' => return self.pop(),
                b'(' => self.marks.push(self.stack.len()),
                b'N' | 0x88 | 0x89 => self.push(Value::Nothing),
                b'K' => {
                    let number = code.bytes(1, "a number")?[0];
                    self.push(Value::Number(number.into()));
                }
                b'M' => {
                    let number = code.u16("a number")?;
                    self.push(Value::Number(number.into()));
                }
                b'J' => {
                    let number = code.u32("a number")?.cast_signed();
                    self.push(Value::Number(number.into()));
                }
                // LONG1
                0x8a => {
                    let length = code.bytes(1, "a length")?[0];
                    let bytes = code.bytes(length.into(), "a number")?;
                    let value = long(bytes).map_or(Value::Opaque, Value::Number);
                    self.push(value);
                }
                b'G' => {
                    code.bytes(8, "a number")?;
                    self.push(Value::Opaque);
                }
                b'X' => {
                    let length = code.u32("a length")?;
                    let text = code.text(length.into(), "a text")?.to_owned();
                    self.push(Value::Text(text));
                }
                b'c' => {
                    let name = format!("{}.{}", line(&mut code)?, line(&mut code)?);
                    self.push(Value::Name(allowed(name)?));
                }
                b')' | b']' => self.push(Value::List(Vec::new())),
                b'}' => self.push(Value::Dictionary(Vec::new())),
                b't' | b'l' => {
                    let items = self.above_mark()?;
                    self.push(Value::List(items));
                }
                0x85..=0x87 => {
                    let first = self.stack.len().checked_sub(usize::from(operation - 0x84)).ok_or(EMPTY)?;
                    let items = self.stack.split_off(first);
                    self.push(Value::List(items));
                }
                b'd' => {
                    let items = self.above_mark()?;
                    self.push(Value::Dictionary(pairs(&items)));
                }
                b's' => {
                    let (value, key) = (self.pop()?, self.pop()?);
                    self.add(&[key, value])?;
                }
                b'u' | b'e' => {
                    let items = self.above_mark()?;
                    self.add(&items)?;
                }
                b'a' => {
                    let item = self.pop()?;
                    self.add(&[item])?;
                }
                b'q' => {
                    let place = code.bytes(1, "a place")?[0];
                    self.remember(place.into())?;
                }
                b'r' => {
                    let place = code.u32("a place")?;
                    self.remember(place)?;
                }
                b'h' => {
                    let place = code.bytes(1, "a place")?[0];
                    self.recall(place.into())?;
                }
                b'j' => {
                    let place = code.u32("a place")?;
                    self.recall(place)?;
                }
                // An object's state is not needed.
                b'b' => {
                    self.pop()?;
                }
                b'Q' => {
                    let described = self.pop()?;
                    let storage = self.storage(described)?;
                    self.push(Value::Storage(Rc::new(storage)));
                }
                // REDUCE and NEWOBJ
                b'R' | 0x81 => {
                    let (arguments, name) = (self.pop()?, self.pop()?);
                    let value = self.call(name, arguments)?;
                    self.push(value);
                }
                other => {
                    return Err(format!("its data.pkl has the operation {other:#04x}, which is refused"));
                }
            }
        }
    }

    fn push(&mut self, value: Value) {
        self.stack.push(self.values.len());
        self.values.push(value);
    }

    fn pop(&mut self) -> Result<Id, String> {
        self.stack.pop().ok_or_else(|| EMPTY.to_owned())
    }

    fn above_mark(&mut self) -> Result<Vec<Id>, String> {
        let mark = self.marks.pop().filter(|mark| *mark <= self.stack.len()).ok_or(EMPTY)?;
        Ok(self.stack.split_off(mark))
    }

    /// Adds items to the list or dictionary on top of the stack.
    fn add(&mut self, items: &[Id]) -> Result<(), String> {
        let top = *self.stack.last().ok_or(EMPTY)?;
        match &mut self.values[top] {
            Value::List(list) => list.extend_from_slice(items),
            Value::Dictionary(dictionary) => dictionary.extend(pairs(items)),
            Value::Opaque => (),
            _ => return Err("its data.pkl adds items to what has none".into()),
        }
        Ok(())
    }

    fn remember(&mut self, place: u32) -> Result<(), String> {
        let top = *self.stack.last().ok_or(EMPTY)?;
        self.memo.insert(place, top);
        Ok(())
    }

    fn recall(&mut self, place: u32) -> Result<(), String> {
        let value = *self.memo.get(&place).ok_or("its data.pkl reads a value that is not there")?;
        if self.stack.len() >= MOST_VALUES {
            return Err("its data.pkl makes more values than any checkpoint needs".into());
        }
        self.stack.push(value);
        Ok(())
    }

    /// The value of a dictionary's key.
    fn item(&self, dictionary: Id, key: &str) -> Option<Id> {
        let Value::Dictionary(items) = &self.values[dictionary] else { return None };
        let is_it = |id: Id| matches!(&self.values[id], Value::Text(text) if text == key);
        items.iter().find(|(name, _)| is_it(*name)).map(|(_, value)| *value)
    }

    fn list(&self, id: Id) -> &[Id] {
        if let Value::List(items) = &self.values[id] { items } else { &[] }
    }

    fn number(&self, id: Id) -> Option<u64> {
        if let Value::Number(number) = &self.values[id] { u64::try_from(*number).ok() } else { None }
    }

    /// Of `("storage", type, key, device, count)`.
    fn storage(&self, described: Id) -> Result<Storage, String> {
        let unclear = "its data.pkl has a storage that is not one of torch's";
        let [_, kind, key, _, _] = *self.list(described) else { return Err(unclear.into()) };
        let (Value::Name(kind), Value::Text(key)) = (&self.values[kind], &self.values[key]) else {
            return Err(unclear.into());
        };
        let (width, stored) = storage_type(kind).ok_or(unclear)?;
        Ok(Storage { key: key.clone(), width, stored })
    }

    /// What a call stands for; nothing is called.
    fn call(&self, name: Id, arguments: Id) -> Result<Value, String> {
        let Value::Name(name) = &self.values[name] else {
            return Err("its data.pkl calls what has no name".into());
        };
        let arguments = self.list(arguments);
        match name.as_str() {
            "torch._utils._rebuild_tensor_v2" => {
                let unclear = "its data.pkl has a tensor that is not one of torch's";
                let [storage, offset, shape, strides, ..] = *arguments else { return Err(unclear.into()) };
                let numbers = |id: Id| {
                    let list = Some(self.list(id)).filter(|list| list.len() <= MOST_DIMENSIONS)?;
                    list.iter().map(|id| self.number(*id)).collect::<Option<Vec<_>>>()
                };
                let (Value::Storage(storage), Some(offset), Some(shape), Some(strides)) =
                    (&self.values[storage], self.number(offset), numbers(shape), numbers(strides))
                else {
                    return Err(unclear.into());
                };
                if shape.len() != strides.len() {
                    return Err(unclear.into());
                }
                let storage = Rc::clone(storage);
                Ok(Value::Tensor(Rc::new(PlacedTensor { storage, offset, shape, strides })))
            }
            "torch._utils._rebuild_parameter" => match arguments.first().map(|id| &self.values[*id]) {
                Some(Value::Tensor(tensor)) => Ok(Value::Tensor(Rc::clone(tensor))),
                _ => Err("its data.pkl has a parameter without a tensor".into()),
            },
            "collections.OrderedDict" | "collections.defaultdict" => Ok(Value::Dictionary(Vec::new())),
            _ => Ok(Value::Opaque),
        }
    }
}

const EMPTY: &str = "its data.pkl takes from an empty stack";

fn pairs(items: &[Id]) -> Vec<(Id, Id)> {
    items.as_chunks::<2>().0.iter().map(|[key, value]| (*key, *value)).collect()
}

/// A number of up to eight bytes, the lowest first, in two's complement.
fn long(bytes: &[u8]) -> Option<i64> {
    let mut whole = [if bytes.last().is_some_and(|last| last & 0x80 != 0) { 0xff } else { 0 }; 8];
    whole.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(i64::from_le_bytes(whole))
}

/// The text up to the end of the line.
fn line<'a>(code: &mut HeaderReader<'a>) -> Result<&'a str, String> {
    /// Of a module or class.
    const LONGEST: usize = 200;
    let mut bytes = Vec::new();
    let start = code.position();
    while bytes.len() <= LONGEST {
        let byte = code.bytes(1, "a name")?[0];
        if byte == b'\n' {
            return code.text_at(start..start + bytes.len(), "a name");
        }
        bytes.push(byte);
    }
    Err("its data.pkl has a name that is too long".into())
}

/// A name that a checkpoint may have in it.
fn allowed(name: String) -> Result<String, String> {
    let is_tensor =
        matches!(name.as_str(), "torch._utils._rebuild_tensor_v2" | "torch._utils._rebuild_parameter");
    if is_tensor || storage_type(&name).is_some() || HARMLESS.iter().any(|start| name.starts_with(start)) {
        return Ok(name);
    }
    Err(format!("its data.pkl names {name}, which no checkpoint of a model needs, and is refused"))
}
