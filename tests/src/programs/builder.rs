//! A program that is being made.

use super::create::{self, Create};
use super::float::Float;
use super::int::Int;
use super::rng::Rng;
use super::{
    Hint, Id, Info, Kind, Op, Program, Statement, Term, When, conv, float, index, int, layer,
    reduce, shape,
};

/// More elements than this has no tensor, except in large programs.
const ELEMENTS_MAX: usize = 3000;

/// What large programs have is enough for sums that members share among each other.
const LARGE_MAX: usize = 20_000;

/// Beyond this, values are made smaller before they are used again.
const SMALL: f64 = 4.0;

type Outputs = Vec<(Id, When)>;
type Terms = Vec<(Id, Term)>;

/// A program that is being made: its statements so far, from which operands are taken.
#[derive(Debug)]
pub struct Builder {
    pub(super) rng: Rng,
    infos: Vec<Info>,
    statements: Vec<Statement>,
    /// The first dimension of most data.
    batch: usize,
    /// Whether some dimensions are long.
    large: bool,
    /// Whether there is a backward pass.
    pub(super) autodiff: bool,
}

impl Info {
    pub(super) fn new(kind: Kind, shape: impl Into<Vec<usize>>, max: f64) -> Self {
        Self {
            kind,
            shape: shape.into(),
            max,
        }
    }

    pub(super) fn float(shape: impl Into<Vec<usize>>, max: f64) -> Self {
        Self::new(Kind::Float, shape, max)
    }

    pub(super) fn int(shape: impl Into<Vec<usize>>, max: f64) -> Self {
        Self::new(Kind::Int, shape, max)
    }

    pub(super) fn bool(shape: impl Into<Vec<usize>>) -> Self {
        Self::new(Kind::Bool, shape, 1.0)
    }

    pub(super) fn rank(&self) -> usize {
        self.shape.len()
    }

    pub(super) fn elements(&self) -> usize {
        self.shape.iter().product()
    }
}

impl Builder {
    /// An empty program, with the choices of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let batch = rng.within(1, 13);
        let large = rng.chance(3);
        let autodiff = rng.chance(80);
        Self {
            large,
            autodiff,
            rng,
            infos: Vec::new(),
            statements: Vec::new(),
            batch,
        }
    }

    /// Adds statements up to a random number of them, and decides on outputs and the loss.
    #[must_use]
    pub fn finish(mut self) -> Program {
        let len = self.rng.within(5, 40);
        let rank = self.rng.within(1, 4);
        self.data(Kind::Float, rank);
        while self.statements.len() < len {
            self.step();
        }
        self.hints();
        let (outputs, loss) = self.outputs();
        Program {
            statements: self.statements,
            infos: self.infos,
            outputs,
            loss,
            autodiff: self.autodiff,
            step: self.autodiff && self.rng.chance(40),
        }
    }

    fn step(&mut self) {
        // An operation that finds no operands adds nothing, or only some of its operands.
        match self.rng.below(100) {
            0..4 => create::generate(self),
            4..28 => float::generate(self),
            28..44 => int::generate(self),
            44..62 => shape::generate(self),
            62..76 => reduce::generate(self),
            76..85 => index::generate(self),
            85..93 => layer::generate(self),
            _ => conv::generate(self),
        }
    }

    /// Tells the mesh how some tensors are to lie, at any time of their lives.
    fn hints(&mut self) {
        if !self.rng.chance(40) {
            return;
        }
        for statement in &mut self.statements {
            if self.rng.chance(15) {
                let last = statement.outs[statement.outs.len() - 1];
                let id = match self.rng.below(3) {
                    0 => self.rng.below(last + 1),
                    _ => last,
                };
                let hint = match self.rng.below(5) {
                    0 => Hint::Replicate,
                    _ => Hint::Shard(self.rng.below(self.infos[id].rank())),
                };
                statement.hint = Some((id, hint));
            }
        }
    }

    fn outputs(&mut self) -> (Outputs, Terms) {
        let used = |id: Id| {
            self.statements
                .iter()
                .any(|statement| statement.args.contains(&id))
        };
        let ends: Vec<bool> = (0..self.infos.len()).map(|id| !used(id)).collect();
        let (mut outputs, mut loss) = (Vec::new(), Vec::new());
        for (id, end) in ends.into_iter().enumerate() {
            if self.rng.chance(if end { 70 } else { 15 }) {
                let when = [When::AtOnce, When::BeforeBackward, When::Last, When::Last];
                outputs.push((id, self.rng.pick(&when)));
            }
            let float = self.infos[id].kind == Kind::Float;
            if float && self.rng.chance(if end { 80 } else { 10 }) {
                let term = match self.rng.below(4) {
                    0 => Term::Mean,
                    1 if self.infos[id].max < 100.0 => Term::Squares,
                    _ => Term::Weighted,
                };
                loss.push((id, term));
            }
        }
        if loss.is_empty() {
            loss.push((0, Term::Weighted));
        }
        (outputs, loss)
    }

    /// Adds a statement and returns its first result.
    pub(super) fn push(&mut self, op: Op, args: &[Id], outs: Vec<Info>) -> Id {
        let first = self.infos.len();
        for info in &outs {
            debug_assert!((1..=4).contains(&info.rank()), "{op:?}");
        }
        self.statements.push(Statement {
            outs: (first..first + outs.len()).collect(),
            op,
            args: args.to_vec(),
            hint: None,
        });
        self.infos.extend(outs);
        first
    }

    pub(super) fn info(&self, id: Id) -> Info {
        self.infos[id].clone()
    }

    /// Whether a tensor of this shape is small enough, and not empty.
    pub(super) fn fits(&self, shape: &[usize]) -> bool {
        let elements: usize = shape.iter().product();
        let most = if self.large { LARGE_MAX } else { ELEMENTS_MAX };
        (1..=most).contains(&elements)
    }

    /// The length of a dimension.
    pub(super) fn len(&mut self, most: usize) -> usize {
        if self.large && self.rng.chance(25) {
            return self.rng.within(60, 100);
        }
        self.rng.within(1, most)
    }

    /// A shape for data: mostly a batch, then a few.
    pub(super) fn shape(&mut self, rank: usize) -> Vec<usize> {
        let most = if rank > 2 { 4 } else { 6 };
        let mut shape: Vec<usize> = (0..rank).map(|_| self.len(most)).collect();
        if self.rng.chance(75) {
            shape[0] = self.batch;
        }
        while !self.fits(&shape) {
            shape.iter_mut().for_each(|len| *len = len.div_ceil(2));
        }
        shape
    }

    /// Data of a new shape.
    pub(super) fn data(&mut self, kind: Kind, rank: usize) -> Id {
        let shape = self.shape(rank);
        self.fresh(kind, shape)
    }

    /// Some tensor that exists and fits, made small; recent ones are preferred.
    pub(super) fn find(&mut self, fits: impl Fn(&Info) -> bool) -> Option<Id> {
        let fits = |id: &Id| fits(&self.infos[*id]) && self.infos[*id].max.is_finite();
        let fitting: Vec<Id> = (0..self.infos.len()).filter(fits).collect();
        if fitting.is_empty() {
            return None;
        }
        let recent = fitting.len().min(4);
        let id = match self.rng.below(3) {
            0 => fitting[self.rng.below(fitting.len())],
            _ => fitting[fitting.len() - 1 - self.rng.below(recent)],
        };
        Some(self.tame(id))
    }

    /// Some tensor of a kind.
    pub(super) fn any(&mut self, kind: Kind) -> Id {
        match self.find(|info| info.kind == kind) {
            Some(id) if !self.rng.chance(8) => id,
            _ => {
                let rank = self.rng.within(1, 4);
                self.data(kind, rank)
            }
        }
    }

    /// Some tensor of a kind, of one of these ranks.
    pub(super) fn ranked(&mut self, kind: Kind, least: usize, most: usize) -> Id {
        let ranks = least..=most;
        match self.find(|info| info.kind == kind && ranks.contains(&info.rank())) {
            Some(id) => id,
            None => {
                let rank = self.rng.within(least, most);
                self.data(kind, rank)
            }
        }
    }

    /// A tensor of just this shape, new or not.
    pub(super) fn shaped(&mut self, kind: Kind, shape: &[usize]) -> Id {
        if self.rng.chance(65)
            && let Some(id) = self.find(|info| info.kind == kind && info.shape == shape)
        {
            return id;
        }
        self.fresh(kind, shape.to_vec())
    }

    /// A tensor that can be broadcast to this shape.
    pub(super) fn companion(&mut self, kind: Kind, shape: &[usize]) -> Id {
        let broadcasts = |info: &Info| {
            let mut dims = info.shape.iter().zip(shape);
            info.rank() == shape.len() && dims.all(|(own, dim)| own == dim || *own == 1)
        };
        if self.rng.chance(75)
            && let Some(id) = self.find(|info| info.kind == kind && broadcasts(info))
        {
            return id;
        }
        let mut own = shape.to_vec();
        for dim in &mut own {
            if self.rng.chance(30) {
                *dim = 1;
            }
        }
        self.fresh(kind, own)
    }

    /// A new tensor: data, a parameter, a constant, or a condition on floats.
    pub(super) fn fresh(&mut self, kind: Kind, shape: Vec<usize>) -> Id {
        if kind == Kind::Bool && self.rng.chance(60) {
            let id = self.shaped(Kind::Float, &shape);
            return int::condition(self, id);
        }
        let op = create::choose(self, kind, &shape);
        self.create(op, kind, shape)
    }

    /// A new parameter.
    pub(super) fn param(&mut self, shape: &[usize]) -> Id {
        let seed = self.rng.bits() % 1000;
        if self.rng.chance(85) {
            self.create(Create::Param { seed }, Kind::Float, shape.to_vec())
        } else {
            self.shaped(Kind::Float, shape)
        }
    }

    pub(super) fn create(&mut self, op: Create, kind: Kind, shape: Vec<usize>) -> Id {
        let max = op.max(kind, &shape);
        self.push(Op::Create(op), &[], vec![Info::new(kind, shape, max)])
    }

    /// The tensor, or what it is when it has been made small.
    fn tame(&mut self, id: Id) -> Id {
        let info = self.info(id);
        match info.kind {
            Kind::Float if info.max > SMALL => {
                let op = Op::Float(Float::Squash(3.0 / info.max));
                self.push(op, &[id], vec![Info::float(info.shape, 1.0)])
            }
            Kind::Int if info.max > 500.0 => {
                let op = Op::Int(Int::Small(97));
                self.push(op, &[id], vec![Info::int(info.shape, 96.0)])
            }
            _ => id,
        }
    }
}
