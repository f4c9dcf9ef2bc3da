//! The curves as a picture: for each model its speed and its wait by concurrency, and its speed by
//! position. Text is left to the viewer's fonts.

use std::error::Error;
use std::fmt;

use plotters::coord::Shift;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use crate::curves::{Crowd, Curves, ModelCurves};
use crate::distribution::Distribution;
use crate::knee::Basis;

/// As SVG: a row of three charts for each model.
///
/// # Errors
/// If a chart cannot be laid out; not for anything that a page holds.
pub fn svg(curves: &Curves) -> Result<String, Box<dyn Error + Send + Sync>> {
    let mut text = String::new();
    let rows = curves.models.len().max(1) as u32;
    let area = SVGBackend::with_string(&mut text, (3 * WIDTH, rows * HEIGHT)).into_drawing_area();
    draw(&area, curves).map_err(|error| error.to_string())?;
    drop(area);
    Ok(text)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Failure<'a> = DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>;

fn draw<'a>(area: &Area<'a>, curves: &Curves) -> Result<(), Failure<'a>> {
    area.fill(&WHITE)?;
    for (row, model) in area.split_evenly((curves.models.len().max(1), 1)).iter().zip(&curves.models) {
        let charts = row.titled(&title(model), ("sans-serif", 16))?.split_evenly((1, 3));
        speed(&charts[0], model)?;
        wait(&charts[1], model)?;
        by_position(&charts[2], model)?;
    }
    area.present()
}

fn title(model: &ModelCurves) -> String {
    let name: String = model.model.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    format!("{name}: {} streams", model.exchanges())
}

fn speed<'a>(area: &Area<'a>, model: &ModelCurves) -> Result<(), Failure<'a>> {
    let quantiles = [("half reach it", 0.5), ("9 of 10", 0.9), ("99 of 100", 0.99)];
    let lines =
        quantiles.map(|(name, share)| (name, at(&model.crowds, |crowd| crowd.speed_reached_by(share))));
    let mean = ("mean", at(&model.crowds, |crowd| crowd.output_rate.mean()));
    let marks = model.knees.iter().filter(|knee| knee.basis() == Basis::Configured);
    let chart = Chart {
        title: "tokens/s of one stream, by streams at once",
        names: model.crowds.iter().map(|crowd| crowd.range).collect(),
        lines: lines.into_iter().chain([mean]).collect(),
        legend: SeriesLabelPosition::UpperRight,
        marks: marks.map(|knee| (knee.objective.clone(), knee.tokens_per_second)).collect(),
    };
    chart.draw(area)
}

fn wait<'a>(area: &Area<'a>, model: &ModelCurves) -> Result<(), Failure<'a>> {
    let quantile = |of: &Distribution, q| of.quantile(q);
    let lines = [0.5, 0.9, 0.99].map(|q| at(&model.crowds, |crowd| quantile(&crowd.first_token, q)));
    let chart = Chart {
        title: "seconds to the first token, by streams at once",
        names: model.crowds.iter().map(|crowd| crowd.range).collect(),
        lines: ["p50", "p90", "p99"].into_iter().zip(lines).collect(),
        // Waits grow with the crowd: the lower right is free.
        legend: SeriesLabelPosition::LowerRight,
        marks: Vec::new(),
    };
    chart.draw(area)
}

fn by_position<'a>(area: &Area<'a>, model: &ModelCurves) -> Result<(), Failure<'a>> {
    let line = model.positions.iter().enumerate();
    let line = line.filter_map(|(at, position)| Some((at as f64, position.tokens_per_second()?))).collect();
    let chart = Chart {
        title: "tokens/s, by position in the answer",
        names: model.positions.iter().map(|position| position.range).collect(),
        lines: vec![("mean", line)],
        legend: SeriesLabelPosition::UpperRight,
        marks: Vec::new(),
    };
    chart.draw(area)
}

/// A quantity by place in the list of ranges, where there is one.
fn at(crowds: &[Crowd], pick: impl Fn(&Crowd) -> Option<f64>) -> Vec<(f64, f64)> {
    crowds.iter().enumerate().filter_map(|(at, crowd)| Some((at as f64, pick(crowd)?))).collect()
}

/// Lines over named places, with values from 0.
struct Chart {
    title: &'static str,
    names: Vec<&'static str>,
    lines: Vec<(&'static str, Vec<(f64, f64)>)>,
    /// Where they are named.
    legend: SeriesLabelPosition,
    /// Levels with a name.
    marks: Vec<(String, f64)>,
}

impl Chart {
    fn draw<'a>(&self, area: &Area<'a>) -> Result<(), Failure<'a>> {
        let values = self.lines.iter().flat_map(|(_, line)| line.iter().map(|(_, value)| *value));
        let top = values.chain(self.marks.iter().map(|(_, level)| *level)).fold(0.0, f64::max);
        let top = if top > 0.0 { top * 1.1 } else { 1.0 };
        let places = Places::new(&self.names);
        let (first, last) = places.range();
        let mut chart = ChartBuilder::on(area)
            .caption(self.title, ("sans-serif", 13))
            .margin(12)
            .x_label_area_size(28)
            .y_label_area_size(48)
            .build_cartesian_2d(places, 0.0..top)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(WHITE)
            .label_style(("sans-serif", 11))
            .draw()?;
        for ((name, line), colour) in self.lines.iter().zip(COLOURS) {
            let style = colour.stroke_width(2);
            chart
                .draw_series(LineSeries::new(line.iter().copied(), style).point_size(3))?
                .label(*name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 14, y)], style));
        }
        for (name, level) in &self.marks {
            let style = GREY.stroke_width(1);
            chart
                .draw_series(LineSeries::new([(first, *level), (last, *level)], style))?
                .label(name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 14, y)], style));
        }
        if self.lines.len() > 1 {
            chart
                .configure_series_labels()
                .position(self.legend.clone())
                .background_style(WHITE.mix(0.8))
                .label_font(("sans-serif", 11))
                .draw()?;
        }
        Ok(())
    }
}

/// An axis of named places, one apart.
struct Places<'n> {
    names: &'n [&'static str],
    inner: RangedCoordf64,
}

impl<'n> Places<'n> {
    fn new(names: &'n [&'static str]) -> Self {
        let last = names.len().max(1) as f64 - 0.5;
        Self { names, inner: (-0.5..last).into() }
    }

    fn range(&self) -> (f64, f64) {
        let range = self.inner.range();
        (range.start, range.end)
    }
}

impl Ranged for Places<'_> {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        self.inner.map(value, limit)
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        (0..self.names.len()).map(|at| at as f64).collect()
    }

    fn range(&self) -> std::ops::Range<f64> {
        self.inner.range()
    }
}

impl ValueFormatter<f64> for Places<'_> {
    fn format(value: &f64) -> String {
        value.to_string()
    }

    fn format_ext(&self, value: &f64) -> String {
        self.names.get(value.round() as usize).copied().unwrap_or_default().to_owned()
    }
}

impl fmt::Debug for Places<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names).finish()
    }
}

/// Of the lines, in their order: told apart by those who see no colours by their brightness too.
const COLOURS: [RGBColor; 4] =
    [RGBColor(0, 60, 136), RGBColor(214, 108, 0), RGBColor(200, 30, 60), RGBColor(20, 130, 90)];

const GREY: RGBColor = RGBColor(120, 120, 120);

/// Pixels of one chart.
const WIDTH: u32 = 400;
const HEIGHT: u32 = 320;
