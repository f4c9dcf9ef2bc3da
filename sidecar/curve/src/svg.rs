//! The curves as an SVG image: for each model its speed and its time to first token by concurrency, and its speed by
//! position. Fonts are the viewer's.

use std::error::Error;
use std::fmt;

use live::curve::Basis;
use plotters::coord::Shift;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use crate::curves::{ConcurrencyPoint, Curves, ModelCurves, PositionSpeed};
use crate::distribution::Distribution;

/// Returns the SVG, with a row of three charts for each model.
///
/// # Errors
/// If a chart cannot be laid out; the contents of a page cannot cause this.
pub fn svg(curves: &Curves) -> Result<String, Box<dyn Error + Send + Sync>> {
    let mut text = String::new();
    let rows = curves.models.len().max(1) as u32;
    let area = SVGBackend::with_string(&mut text, (3 * WIDTH, rows * HEIGHT)).into_drawing_area();
    draw(&area, curves).map_err(|error| error.to_string())?;
    drop(area);
    Ok(text)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type DrawError<'a> = DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>;

fn draw<'a>(area: &Area<'a>, curves: &Curves) -> Result<(), DrawError<'a>> {
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
    let name: String = model.title().chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    format!("{name}: {} streams", model.exchanges())
}

fn speed<'a>(area: &Area<'a>, model: &ModelCurves) -> Result<(), DrawError<'a>> {
    let quantiles = [("half reach it", 0.5), ("9 of 10", 0.9), ("99 of 100", 0.99)];
    let lines = quantiles.map(|(name, share)| {
        let point =
            |range: &ConcurrencyPoint| Some(Point::of(range.speed_reached_by(share)?, &range.output_rate));
        (name, at(&model.by_concurrency, point))
    });
    // The mean of a clipped histogram may be far above every point that can be drawn.
    let mean = |point: &ConcurrencyPoint| {
        let (mean, last) = (point.output_rate.mean()?, point.output_rate.last_edge()?);
        Some(Point { value: mean.min(last), clipped: mean > last })
    };
    let mean = ("mean", at(&model.by_concurrency, mean));
    let marks = model.knees.iter().filter(|knee| knee.basis() == Basis::Configured);
    let chart = Chart {
        title: "tokens/s of one stream, by streams at once",
        names: model.by_concurrency.iter().map(|point| point.range).collect(),
        lines: lines.into_iter().chain([mean]).collect(),
        marks: marks.map(|knee| (knee.objective.clone(), knee.tokens_per_second)).collect(),
    };
    chart.draw(area)
}

fn wait<'a>(area: &Area<'a>, model: &ModelCurves) -> Result<(), DrawError<'a>> {
    let point = |of: &Distribution, q| Some(Point::of(of.quantile(q)?, of));
    let lines = [0.5, 0.9, 0.99].map(|q| at(&model.by_concurrency, |range| point(&range.first_token, q)));
    let chart = Chart {
        title: "seconds to the first token, by streams at once",
        names: model.by_concurrency.iter().map(|point| point.range).collect(),
        lines: ["p50", "p90", "p99"].into_iter().zip(lines).collect(),
        marks: Vec::new(),
    };
    chart.draw(area)
}

fn by_position<'a>(area: &Area<'a>, model: &ModelCurves) -> Result<(), DrawError<'a>> {
    let line = model.positions.iter().enumerate();
    let point =
        |position: &PositionSpeed| Some(Point { value: position.tokens_per_second()?, clipped: false });
    let line = line.filter_map(|(at, position)| Some((at as f64, point(position)?))).collect();
    let chart = Chart {
        title: "tokens/s, by position in the answer",
        names: model.positions.iter().map(|position| position.range).collect(),
        lines: vec![("mean", line)],
        marks: Vec::new(),
    };
    chart.draw(area)
}

/// Returns a quantity with its index in the list of ranges, where it is present.
fn at(
    by_concurrency: &[ConcurrencyPoint],
    pick: impl Fn(&ConcurrencyPoint) -> Option<Point>,
) -> Vec<(f64, Point)> {
    by_concurrency.iter().enumerate().filter_map(|(at, point)| Some((at as f64, pick(point)?))).collect()
}

/// A point of a line.
#[derive(Clone, Copy)]
struct Point {
    value: f64,
    /// The value is the histogram's last edge, and the true one is equal or higher.
    clipped: bool,
}

impl Point {
    fn of(value: f64, of: &Distribution) -> Self {
        Self { value, clipped: Some(value) == of.last_edge() }
    }
}

/// Lines over named positions, with values from 0. The names are below the chart, so that none covers a point.
struct Chart {
    title: &'static str,
    names: Vec<&'static str>,
    lines: Vec<(&'static str, Vec<(f64, Point)>)>,
    /// Horizontal lines with a name.
    marks: Vec<(String, f64)>,
}

impl Chart {
    fn draw<'a>(&self, area: &Area<'a>) -> Result<(), DrawError<'a>> {
        let (above, legend) = area.split_vertically(HEIGHT - TITLE - LEGEND);
        let values = self.lines.iter().flat_map(|(_, line)| line.iter().map(|(_, point)| point.value));
        let top = values.chain(self.marks.iter().map(|(_, level)| *level)).fold(0.0, f64::max);
        let top = if top > 0.0 { top * 1.1 } else { 1.0 };
        let places = Places::new(&self.names);
        let (first, last) = places.range();
        let mut chart = ChartBuilder::on(&above)
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
            // Rounded: three steps of 0.2 are not exactly 0.6.
            .y_label_formatter(&|level| ((level * 1e6).round() / 1e6).to_string())
            .draw()?;
        for ((_, line), colour) in self.lines.iter().zip(COLOURS) {
            let points = line.iter().map(|(at, point)| (*at, point.value));
            chart.draw_series(LineSeries::new(points, colour.stroke_width(2)).point_size(3))?;
            let clipped = line.iter().filter(|(_, point)| point.clipped);
            let text = ("sans-serif", 11).into_font().color(&colour);
            chart.draw_series(clipped.map(|(at, point)| {
                EmptyElement::at((*at, point.value)) + Text::new("≥", (-4, -16), text.clone())
            }))?;
        }
        for (name, level) in &self.marks {
            chart.draw_series(LineSeries::new([(first, *level), (last, *level)], GREY.stroke_width(1)))?;
            let text = ("sans-serif", 11).into_font().color(&GREY);
            let label = Text::new(format!("{name} {level}"), (4, -14), text);
            chart.draw_series([EmptyElement::at((first, *level)) + label])?;
        }
        self.name_lines(&legend)
    }

    /// Draws the legend.
    fn name_lines<'a>(&self, area: &Area<'a>) -> Result<(), DrawError<'a>> {
        if self.lines.len() < 2 {
            return Ok(());
        }
        let step = (WIDTH - NAMES_LEFT) / COLOURS.len() as u32;
        for (at, ((name, _), colour)) in self.lines.iter().zip(COLOURS).enumerate() {
            let x = (NAMES_LEFT + at as u32 * step) as i32;
            area.draw(&PathElement::new([(x, 8), (x + 14, 8)], colour.stroke_width(2)))?;
            area.draw(&Text::new(*name, (x + 18, 2), ("sans-serif", 11).into_font()))?;
        }
        Ok(())
    }
}

/// An axis of named positions, one unit apart.
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

/// The colours of the lines, in their order, which differ in brightness too.
const COLOURS: [RGBColor; 4] =
    [RGBColor(0, 60, 136), RGBColor(214, 108, 0), RGBColor(200, 30, 60), RGBColor(20, 130, 90)];

const GREY: RGBColor = RGBColor(120, 120, 120);

/// Pixels of one chart, including its share of the row's title and its legend.
const WIDTH: u32 = 400;
const HEIGHT: u32 = 340;

/// Pixels of a row's title and of a chart's legend.
const TITLE: u32 = 20;
const LEGEND: u32 = 20;

/// Pixels to the left of the legend: the axis and its margin.
const NAMES_LEFT: u32 = 60;
