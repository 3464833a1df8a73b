"""Field names and types of Google Sheets; made by ``schema.py`` from the discovery document."""

MESSAGES = """
AddBandingRequest bandedRange:@BandedRange
AddBandingResponse bandedRange:@BandedRange
AddChartRequest chart:@EmbeddedChart
AddChartResponse chart:@EmbeddedChart
AddCommentReplyRequest commentId:s post:@Post
AddCommentReplyResponse post:@Post
AddConditionalFormatRuleRequest index:i rule:@ConditionalFormatRule
AddDataSourceRequest dataSource:@DataSource
AddDataSourceResponse dataExecutionStatus:@DataExecutionStatus dataSource:@DataSource
AddDimensionGroupRequest range:@DimensionRange
AddDimensionGroupResponse dimensionGroups:[@DimensionGroup
AddFilterViewRequest filter:@FilterView
AddFilterViewResponse filter:@FilterView
AddNamedRangeRequest namedRange:@NamedRange
AddNamedRangeResponse namedRange:@NamedRange
AddProtectedRangeRequest protectedRange:@ProtectedRange
AddProtectedRangeResponse protectedRange:@ProtectedRange
AddSheetRequest properties:@SheetProperties
AddSheetResponse properties:@SheetProperties
AddSlicerRequest slicer:@Slicer
AddSlicerResponse slicer:@Slicer
AddTableRequest table:@Table
AddTableResponse table:@Table
AppendCellsRequest fields:s rows:[@RowData sheetId:i tableId:s
AppendDimensionRequest dimension:=E0 length:i sheetId:i
AppendValuesResponse spreadsheetId:s tableRange:s updates:@UpdateValuesResponse
AutoFillRequest range:@GridRange sourceAndDestination:@SourceAndDestination useAlternateSeries:b
AutoResizeDimensionsRequest dataSourceSheetDimensions:@DataSourceSheetDimensionRange dimensions:@DimensionRange
BandedRange bandedRangeId:i bandedRangeReference:s columnProperties:@BandingProperties range:@GridRange
  rowProperties:@BandingProperties
BandingProperties firstBandColor:@Color firstBandColorStyle:@ColorStyle footerColor:@Color
  footerColorStyle:@ColorStyle headerColor:@Color headerColorStyle:@ColorStyle secondBandColor:@Color
  secondBandColorStyle:@ColorStyle
BaselineValueFormat comparisonType:=E1 description:s negativeColor:@Color negativeColorStyle:@ColorStyle
  position:@TextPosition positiveColor:@Color positiveColorStyle:@ColorStyle textFormat:@TextFormat
BasicChartAxis format:@TextFormat position:=E2 title:s titleTextPosition:@TextPosition
  viewWindowOptions:@ChartAxisViewWindowOptions
BasicChartDomain domain:@ChartData reversed:b
BasicChartSeries color:@Color colorStyle:@ColorStyle dataLabel:@DataLabel lineStyle:@LineStyle pointStyle:@PointStyle
  series:@ChartData styleOverrides:[@BasicSeriesDataPointStyleOverride targetAxis:=E2 type:=E3
BasicChartSpec axis:[@BasicChartAxis chartType:=E3 compareMode:=E4 domains:[@BasicChartDomain headerCount:i
  interpolateNulls:b legendPosition:=E5 lineSmoothing:b series:[@BasicChartSeries stackedType:=E6 threeDimensional:b
  totalDataLabel:@DataLabel
BasicFilter criteria:{@FilterCriteria filterSpecs:[@FilterSpec range:@GridRange sortSpecs:[@SortSpec tableId:s
BasicSeriesDataPointStyleOverride color:@Color colorStyle:@ColorStyle index:i pointStyle:@PointStyle
BatchClearValuesByDataFilterRequest dataFilters:[@DataFilter
BatchClearValuesByDataFilterResponse clearedRanges:[s spreadsheetId:s
BatchClearValuesRequest ranges:[s
BatchClearValuesResponse clearedRanges:[s spreadsheetId:s
BatchGetValuesByDataFilterRequest dataFilters:[@DataFilter dateTimeRenderOption:=E7 majorDimension:=E0
  valueRenderOption:=E8
BatchGetValuesByDataFilterResponse spreadsheetId:s valueRanges:[@MatchedValueRange
BatchGetValuesResponse spreadsheetId:s valueRanges:[@ValueRange
BatchUpdateSpreadsheetRequest commentsViewMode:=E9 includeSpreadsheetInResponse:b requests:[@Request
  responseIncludeGridData:b responseRanges:[s
BatchUpdateSpreadsheetResponse commentUpdateState:=E10 replies:[@Response spreadsheetId:s
  updatedSpreadsheet:@Spreadsheet
BatchUpdateValuesByDataFilterRequest data:[@DataFilterValueRange includeValuesInResponse:b
  responseDateTimeRenderOption:=E7 responseValueRenderOption:=E8 valueInputOption:=E11
BatchUpdateValuesByDataFilterResponse responses:[@UpdateValuesByDataFilterResponse spreadsheetId:s totalUpdatedCells:i
  totalUpdatedColumns:i totalUpdatedRows:i totalUpdatedSheets:i
BatchUpdateValuesRequest data:[@ValueRange includeValuesInResponse:b responseDateTimeRenderOption:=E7
  responseValueRenderOption:=E8 valueInputOption:=E11
BatchUpdateValuesResponse responses:[@UpdateValuesResponse spreadsheetId:s totalUpdatedCells:i totalUpdatedColumns:i
  totalUpdatedRows:i totalUpdatedSheets:i
BigQueryDataSourceSpec projectId:s querySpec:@BigQueryQuerySpec tableSpec:@BigQueryTableSpec
BigQueryQuerySpec rawQuery:s
BigQueryTableSpec datasetId:s tableId:s tableProjectId:s
BooleanCondition type:=E12 values:[@ConditionValue
BooleanRule condition:@BooleanCondition format:@CellFormat
Border color:@Color colorStyle:@ColorStyle style:=E13 width:i
Borders bottom:@Border left:@Border right:@Border top:@Border
BubbleChartSpec bubbleBorderColor:@Color bubbleBorderColorStyle:@ColorStyle bubbleLabels:@ChartData
  bubbleMaxRadiusSize:i bubbleMinRadiusSize:i bubbleOpacity:d bubbleSizes:@ChartData bubbleTextStyle:@TextFormat
  domain:@ChartData groupIds:@ChartData legendPosition:=E14 series:@ChartData
CancelDataSourceRefreshRequest dataSourceId:s isAll:b references:@DataSourceObjectReferences
CancelDataSourceRefreshResponse statuses:[@CancelDataSourceRefreshStatus
CancelDataSourceRefreshStatus reference:@DataSourceObjectReference
  refreshCancellationStatus:@RefreshCancellationStatus
CandlestickChartSpec data:[@CandlestickData domain:@CandlestickDomain
CandlestickData closeSeries:@CandlestickSeries highSeries:@CandlestickSeries lowSeries:@CandlestickSeries
  openSeries:@CandlestickSeries
CandlestickDomain data:@ChartData reversed:b
CandlestickSeries data:@ChartData
CellData chipRuns:[@ChipRun dataSourceFormula:@DataSourceFormula dataSourceTable:@DataSourceTable
  dataValidation:@DataValidationRule effectiveFormat:@CellFormat effectiveValue:@ExtendedValue formattedValue:s
  hyperlink:s note:s pivotTable:@PivotTable textFormatRuns:[@TextFormatRun userEnteredFormat:@CellFormat
  userEnteredValue:@ExtendedValue
CellFormat backgroundColor:@Color backgroundColorStyle:@ColorStyle borders:@Borders horizontalAlignment:=E15
  hyperlinkDisplayType:=E16 numberFormat:@NumberFormat padding:@Padding textDirection:=E17 textFormat:@TextFormat
  textRotation:@TextRotation verticalAlignment:=E18 wrapStrategy:=E19
ChartAxisViewWindowOptions viewWindowMax:d viewWindowMin:d viewWindowMode:=E20
ChartCustomNumberFormatOptions prefix:s suffix:s
ChartData aggregateType:=E21 columnReference:@DataSourceColumnReference groupRule:@ChartGroupRule
  sourceRange:@ChartSourceRange
ChartDateTimeRule type:=E22
ChartGroupRule dateTimeRule:@ChartDateTimeRule histogramRule:@ChartHistogramRule
ChartHistogramRule intervalSize:d maxValue:d minValue:d
ChartSourceRange sources:[@GridRange
ChartSpec altText:s backgroundColor:@Color backgroundColorStyle:@ColorStyle basicChart:@BasicChartSpec
  bubbleChart:@BubbleChartSpec candlestickChart:@CandlestickChartSpec
  dataSourceChartProperties:@DataSourceChartProperties filterSpecs:[@FilterSpec fontName:s
  hiddenDimensionStrategy:=E23 histogramChart:@HistogramChartSpec maximized:b orgChart:@OrgChartSpec
  pieChart:@PieChartSpec scorecardChart:@ScorecardChartSpec sortSpecs:[@SortSpec subtitle:s
  subtitleTextFormat:@TextFormat subtitleTextPosition:@TextPosition title:s titleTextFormat:@TextFormat
  titleTextPosition:@TextPosition treemapChart:@TreemapChartSpec waterfallChart:@WaterfallChartSpec
Chip personProperties:@PersonProperties richLinkProperties:@RichLinkProperties
ChipRun chip:@Chip startIndex:i
ClearBasicFilterRequest sheetId:i
ClearValuesRequest
ClearValuesResponse clearedRange:s spreadsheetId:s
Color alpha:d blue:d green:d red:d
ColorStyle rgbColor:@Color themeColor:=E24
CommentAnchor anchorId:s range:@GridRange
CommentThread anchorId:s commentId:s headPost:@Post plainTextQuote:s replies:[@Post status:=E25
ConditionValue relativeDate:=E26 userEnteredValue:s
ConditionalFormatRule booleanRule:@BooleanRule gradientRule:@GradientRule ranges:[@GridRange
CopyPasteRequest destination:@GridRange pasteOrientation:=E27 pasteType:=E28 source:@GridRange
CopySheetToAnotherSpreadsheetRequest destinationSpreadsheetId:s
CreateDeveloperMetadataRequest developerMetadata:@DeveloperMetadata
CreateDeveloperMetadataResponse developerMetadata:@DeveloperMetadata
CutPasteRequest destination:@GridCoordinate pasteType:=E28 source:@GridRange
DataExecutionStatus errorCode:=E29 errorMessage:s lastRefreshTime:s state:=E30
DataFilter a1Range:s developerMetadataLookup:@DeveloperMetadataLookup gridRange:@GridRange
DataFilterValueRange dataFilter:@DataFilter majorDimension:=E0 values:[[*
DataLabel customLabelData:@ChartData placement:=E31 textFormat:@TextFormat type:=E32
DataSource calculatedColumns:[@DataSourceColumn dataSourceId:s sheetId:i spec:@DataSourceSpec
DataSourceChartProperties dataExecutionStatus:@DataExecutionStatus dataSourceId:s
DataSourceColumn formula:s reference:@DataSourceColumnReference
DataSourceColumnReference name:s
DataSourceFormula dataExecutionStatus:@DataExecutionStatus dataSourceId:s
DataSourceObjectReference chartId:i dataSourceFormulaCell:@GridCoordinate
  dataSourcePivotTableAnchorCell:@GridCoordinate dataSourceTableAnchorCell:@GridCoordinate sheetId:s
DataSourceObjectReferences references:[@DataSourceObjectReference
DataSourceParameter name:s namedRangeId:s range:@GridRange
DataSourceRefreshDailySchedule startTime:@TimeOfDay
DataSourceRefreshMonthlySchedule daysOfMonth:[i startTime:@TimeOfDay
DataSourceRefreshSchedule dailySchedule:@DataSourceRefreshDailySchedule enabled:b
  monthlySchedule:@DataSourceRefreshMonthlySchedule nextRun:@Interval refreshScope:=E33
  weeklySchedule:@DataSourceRefreshWeeklySchedule
DataSourceRefreshWeeklySchedule daysOfWeek:[=E34 startTime:@TimeOfDay
DataSourceSheetDimensionRange columnReferences:[@DataSourceColumnReference sheetId:i
DataSourceSheetProperties columns:[@DataSourceColumn dataExecutionStatus:@DataExecutionStatus dataSourceId:s
DataSourceSpec bigQuery:@BigQueryDataSourceSpec looker:@LookerDataSourceSpec parameters:[@DataSourceParameter
DataSourceTable columnSelectionType:=E35 columns:[@DataSourceColumnReference dataExecutionStatus:@DataExecutionStatus
  dataSourceId:s filterSpecs:[@FilterSpec rowLimit:i sortSpecs:[@SortSpec
DataValidationRule condition:@BooleanCondition inputMessage:s showCustomUi:b strict:b
DateTimeRule type:=E36
DeleteBandingRequest bandedRangeId:i
DeleteCommentReplyRequest commentId:s postId:s
DeleteCommentRequest commentId:s
DeleteConditionalFormatRuleRequest index:i sheetId:i
DeleteConditionalFormatRuleResponse rule:@ConditionalFormatRule
DeleteDataSourceRequest dataSourceId:s
DeleteDeveloperMetadataRequest dataFilter:@DataFilter
DeleteDeveloperMetadataResponse deletedDeveloperMetadata:[@DeveloperMetadata
DeleteDimensionGroupRequest range:@DimensionRange
DeleteDimensionGroupResponse dimensionGroups:[@DimensionGroup
DeleteDimensionRequest range:@DimensionRange
DeleteDuplicatesRequest comparisonColumns:[@DimensionRange range:@GridRange
DeleteDuplicatesResponse duplicatesRemovedCount:i
DeleteEmbeddedObjectRequest objectId:i
DeleteFilterViewRequest filterId:i
DeleteNamedRangeRequest namedRangeId:s
DeleteProtectedRangeRequest protectedRangeId:i
DeleteRangeRequest range:@GridRange shiftDimension:=E0
DeleteSheetRequest sheetId:i
DeleteTableRequest tableId:s
DeveloperMetadata location:@DeveloperMetadataLocation metadataId:i metadataKey:s metadataValue:s visibility:=E37
DeveloperMetadataLocation dimensionRange:@DimensionRange locationType:=E38 sheetId:i spreadsheet:b
DeveloperMetadataLookup locationMatchingStrategy:=E39 locationType:=E38 metadataId:i metadataKey:s
  metadataLocation:@DeveloperMetadataLocation metadataValue:s visibility:=E37
DimensionGroup collapsed:b depth:i range:@DimensionRange
DimensionProperties dataSourceColumnReference:@DataSourceColumnReference developerMetadata:[@DeveloperMetadata
  hiddenByFilter:b hiddenByUser:b pixelSize:i
DimensionRange dimension:=E0 endIndex:i sheetId:i startIndex:i
DuplicateFilterViewRequest filterId:i
DuplicateFilterViewResponse filter:@FilterView
DuplicateSheetRequest insertSheetIndex:i newSheetId:i newSheetName:s sourceSheetId:i
DuplicateSheetResponse properties:@SheetProperties
Editors domainUsersCanEdit:b groups:[s users:[s
EmbeddedChart border:@EmbeddedObjectBorder chartId:i position:@EmbeddedObjectPosition spec:@ChartSpec
EmbeddedObjectBorder color:@Color colorStyle:@ColorStyle
EmbeddedObjectPosition newSheet:b overlayPosition:@OverlayPosition sheetId:i
ErrorValue message:s type:=E40
ExtendedValue boolValue:b errorValue:@ErrorValue formulaValue:s numberValue:d stringValue:s
FilterCriteria condition:@BooleanCondition hiddenValues:[s visibleBackgroundColor:@Color
  visibleBackgroundColorStyle:@ColorStyle visibleForegroundColor:@Color visibleForegroundColorStyle:@ColorStyle
FilterSpec columnIndex:i dataSourceColumnReference:@DataSourceColumnReference filterCriteria:@FilterCriteria
FilterView criteria:{@FilterCriteria filterSpecs:[@FilterSpec filterViewId:i namedRangeId:s range:@GridRange
  sortSpecs:[@SortSpec tableId:s title:s
FindReplaceRequest allSheets:b find:s includeFormulas:b matchCase:b matchEntireCell:b range:@GridRange replacement:s
  searchByRegex:b sheetId:i
FindReplaceResponse formulasChanged:i occurrencesChanged:i rowsChanged:i sheetsChanged:i valuesChanged:i
GetSpreadsheetByDataFilterRequest commentsViewMode:=E9 dataFilters:[@DataFilter excludeTablesInBandedRanges:b
  includeGridData:b
GradientRule maxpoint:@InterpolationPoint midpoint:@InterpolationPoint minpoint:@InterpolationPoint
GridCoordinate columnIndex:i rowIndex:i sheetId:i
GridData columnMetadata:[@DimensionProperties rowData:[@RowData rowMetadata:[@DimensionProperties startColumn:i
  startRow:i
GridProperties columnCount:i columnGroupControlAfter:b frozenColumnCount:i frozenRowCount:i hideGridlines:b rowCount:i
  rowGroupControlAfter:b
GridRange endColumnIndex:i endRowIndex:i sheetId:i startColumnIndex:i startRowIndex:i
HistogramChartSpec bucketSize:d legendPosition:=E41 outlierPercentile:d series:[@HistogramSeries showItemDividers:b
HistogramRule end:d interval:d start:d
HistogramSeries barColor:@Color barColorStyle:@ColorStyle data:@ChartData
InsertCommentRequest assigneeEmailAddress:s content:s coordinate:@GridCoordinate
InsertCommentResponse commentThread:@CommentThread
InsertDimensionRequest inheritFromBefore:b range:@DimensionRange
InsertRangeRequest range:@GridRange shiftDimension:=E0
InterpolationPoint color:@Color colorStyle:@ColorStyle type:=E42 value:s
Interval endTime:s startTime:s
IterativeCalculationSettings convergenceThreshold:d maxIterations:i
KeyValueFormat position:@TextPosition textFormat:@TextFormat
LineStyle type:=E43 width:i
Link uri:s
LookerDataSourceSpec explore:s instanceUri:s model:s
ManualRule groups:[@ManualRuleGroup
ManualRuleGroup groupName:@ExtendedValue items:[@ExtendedValue
MatchedDeveloperMetadata dataFilters:[@DataFilter developerMetadata:@DeveloperMetadata
MatchedValueRange dataFilters:[@DataFilter valueRange:@ValueRange
MergeCellsRequest mergeType:=E44 range:@GridRange
MoveDimensionRequest destinationIndex:i source:@DimensionRange
NamedRange name:s namedRangeId:s range:@GridRange
NumberFormat pattern:s type:=E45
OrgChartSpec labels:@ChartData nodeColor:@Color nodeColorStyle:@ColorStyle nodeSize:=E46 parentLabels:@ChartData
  selectedNodeColor:@Color selectedNodeColorStyle:@ColorStyle tooltips:@ChartData
OverlayPosition anchorCell:@GridCoordinate heightPixels:i offsetXPixels:i offsetYPixels:i widthPixels:i
Padding bottom:i left:i right:i top:i
PasteDataRequest coordinate:@GridCoordinate data:s delimiter:s html:b type:=E28
PersonProperties displayFormat:=E47 email:s
PieChartSpec domain:@ChartData legendPosition:=E48 pieHole:d series:@ChartData threeDimensional:b
PivotFilterCriteria condition:@BooleanCondition visibleByDefault:b visibleValues:[s
PivotFilterSpec columnOffsetIndex:i dataSourceColumnReference:@DataSourceColumnReference
  filterCriteria:@PivotFilterCriteria
PivotGroup dataSourceColumnReference:@DataSourceColumnReference groupLimit:@PivotGroupLimit groupRule:@PivotGroupRule
  label:s repeatHeadings:b showTotals:b sortOrder:=E49 sourceColumnOffset:i valueBucket:@PivotGroupSortValueBucket
  valueMetadata:[@PivotGroupValueMetadata
PivotGroupLimit applyOrder:i countLimit:i
PivotGroupRule dateTimeRule:@DateTimeRule histogramRule:@HistogramRule manualRule:@ManualRule
PivotGroupSortValueBucket buckets:[@ExtendedValue valuesIndex:i
PivotGroupValueMetadata collapsed:b value:@ExtendedValue
PivotTable columns:[@PivotGroup criteria:{@PivotFilterCriteria dataExecutionStatus:@DataExecutionStatus dataSourceId:s
  filterSpecs:[@PivotFilterSpec rows:[@PivotGroup source:@GridRange valueLayout:=E50 values:[@PivotValue
PivotValue calculatedDisplayType:=E51 dataSourceColumnReference:@DataSourceColumnReference formula:s name:s
  sourceColumnOffset:i summarizeFunction:=E52
PointStyle shape:=E53 size:d
Post assigneeEmail:s author:@PostAuthor commentAction:=E54 content:s contentHtml:s createTime:s deleted:b
  fromCopiedSpreadsheet:b fromImportedSpreadsheet:b postId:s updateTime:s
PostAuthor anonymous:b displayName:s me:b user:s
ProtectedRange description:s editors:@Editors namedRangeId:s protectedRangeId:i range:@GridRange
  requestingUserCanEdit:b tableId:s unprotectedRanges:[@GridRange warningOnly:b
RandomizeRangeRequest range:@GridRange
RefreshCancellationStatus errorCode:=E55 state:=E56
RefreshDataSourceObjectExecutionStatus dataExecutionStatus:@DataExecutionStatus reference:@DataSourceObjectReference
RefreshDataSourceRequest dataSourceId:s force:b isAll:b references:@DataSourceObjectReferences
RefreshDataSourceResponse statuses:[@RefreshDataSourceObjectExecutionStatus
RepeatCellRequest cell:@CellData fields:s range:@GridRange
Request addBanding:@AddBandingRequest addChart:@AddChartRequest addCommentReply:@AddCommentReplyRequest
  addConditionalFormatRule:@AddConditionalFormatRuleRequest addDataSource:@AddDataSourceRequest
  addDimensionGroup:@AddDimensionGroupRequest addFilterView:@AddFilterViewRequest addNamedRange:@AddNamedRangeRequest
  addProtectedRange:@AddProtectedRangeRequest addSheet:@AddSheetRequest addSlicer:@AddSlicerRequest
  addTable:@AddTableRequest appendCells:@AppendCellsRequest appendDimension:@AppendDimensionRequest
  autoFill:@AutoFillRequest autoResizeDimensions:@AutoResizeDimensionsRequest
  cancelDataSourceRefresh:@CancelDataSourceRefreshRequest clearBasicFilter:@ClearBasicFilterRequest
  copyPaste:@CopyPasteRequest createDeveloperMetadata:@CreateDeveloperMetadataRequest cutPaste:@CutPasteRequest
  deleteBanding:@DeleteBandingRequest deleteComment:@DeleteCommentRequest
  deleteCommentReply:@DeleteCommentReplyRequest deleteConditionalFormatRule:@DeleteConditionalFormatRuleRequest
  deleteDataSource:@DeleteDataSourceRequest deleteDeveloperMetadata:@DeleteDeveloperMetadataRequest
  deleteDimension:@DeleteDimensionRequest deleteDimensionGroup:@DeleteDimensionGroupRequest
  deleteDuplicates:@DeleteDuplicatesRequest deleteEmbeddedObject:@DeleteEmbeddedObjectRequest
  deleteFilterView:@DeleteFilterViewRequest deleteNamedRange:@DeleteNamedRangeRequest
  deleteProtectedRange:@DeleteProtectedRangeRequest deleteRange:@DeleteRangeRequest deleteSheet:@DeleteSheetRequest
  deleteTable:@DeleteTableRequest duplicateFilterView:@DuplicateFilterViewRequest
  duplicateSheet:@DuplicateSheetRequest findReplace:@FindReplaceRequest insertComment:@InsertCommentRequest
  insertDimension:@InsertDimensionRequest insertRange:@InsertRangeRequest mergeCells:@MergeCellsRequest
  moveDimension:@MoveDimensionRequest pasteData:@PasteDataRequest randomizeRange:@RandomizeRangeRequest
  refreshDataSource:@RefreshDataSourceRequest repeatCell:@RepeatCellRequest setBasicFilter:@SetBasicFilterRequest
  setDataValidation:@SetDataValidationRequest sortRange:@SortRangeRequest textToColumns:@TextToColumnsRequest
  trimWhitespace:@TrimWhitespaceRequest unmergeCells:@UnmergeCellsRequest updateBanding:@UpdateBandingRequest
  updateBorders:@UpdateBordersRequest updateCells:@UpdateCellsRequest updateChartSpec:@UpdateChartSpecRequest
  updateCommentPost:@UpdateCommentPostRequest updateConditionalFormatRule:@UpdateConditionalFormatRuleRequest
  updateDataSource:@UpdateDataSourceRequest updateDeveloperMetadata:@UpdateDeveloperMetadataRequest
  updateDimensionGroup:@UpdateDimensionGroupRequest updateDimensionProperties:@UpdateDimensionPropertiesRequest
  updateEmbeddedObjectBorder:@UpdateEmbeddedObjectBorderRequest
  updateEmbeddedObjectPosition:@UpdateEmbeddedObjectPositionRequest updateFilterView:@UpdateFilterViewRequest
  updateNamedRange:@UpdateNamedRangeRequest updateProtectedRange:@UpdateProtectedRangeRequest
  updateSheetProperties:@UpdateSheetPropertiesRequest updateSlicerSpec:@UpdateSlicerSpecRequest
  updateSpreadsheetProperties:@UpdateSpreadsheetPropertiesRequest updateTable:@UpdateTableRequest
Response addBanding:@AddBandingResponse addChart:@AddChartResponse addCommentReply:@AddCommentReplyResponse
  addDataSource:@AddDataSourceResponse addDimensionGroup:@AddDimensionGroupResponse
  addFilterView:@AddFilterViewResponse addNamedRange:@AddNamedRangeResponse
  addProtectedRange:@AddProtectedRangeResponse addSheet:@AddSheetResponse addSlicer:@AddSlicerResponse
  addTable:@AddTableResponse cancelDataSourceRefresh:@CancelDataSourceRefreshResponse
  createDeveloperMetadata:@CreateDeveloperMetadataResponse
  deleteConditionalFormatRule:@DeleteConditionalFormatRuleResponse
  deleteDeveloperMetadata:@DeleteDeveloperMetadataResponse deleteDimensionGroup:@DeleteDimensionGroupResponse
  deleteDuplicates:@DeleteDuplicatesResponse duplicateFilterView:@DuplicateFilterViewResponse
  duplicateSheet:@DuplicateSheetResponse findReplace:@FindReplaceResponse insertComment:@InsertCommentResponse
  refreshDataSource:@RefreshDataSourceResponse trimWhitespace:@TrimWhitespaceResponse
  updateConditionalFormatRule:@UpdateConditionalFormatRuleResponse updateDataSource:@UpdateDataSourceResponse
  updateDeveloperMetadata:@UpdateDeveloperMetadataResponse
  updateEmbeddedObjectPosition:@UpdateEmbeddedObjectPositionResponse
RichLinkProperties mimeType:s uri:s
RowData values:[@CellData
ScorecardChartSpec aggregateType:=E21 baselineValueData:@ChartData baselineValueFormat:@BaselineValueFormat
  customFormatOptions:@ChartCustomNumberFormatOptions keyValueData:@ChartData keyValueFormat:@KeyValueFormat
  numberFormatSource:=E57 scaleFactor:d
SearchDeveloperMetadataRequest dataFilters:[@DataFilter
SearchDeveloperMetadataResponse matchedDeveloperMetadata:[@MatchedDeveloperMetadata
SetBasicFilterRequest filter:@BasicFilter
SetDataValidationRequest filteredRowsIncluded:b range:@GridRange rule:@DataValidationRule
Sheet bandedRanges:[@BandedRange basicFilter:@BasicFilter charts:[@EmbeddedChart columnGroups:[@DimensionGroup
  commentAnchors:[@CommentAnchor conditionalFormats:[@ConditionalFormatRule data:[@GridData
  developerMetadata:[@DeveloperMetadata filterViews:[@FilterView merges:[@GridRange properties:@SheetProperties
  protectedRanges:[@ProtectedRange rowGroups:[@DimensionGroup slicers:[@Slicer tables:[@Table
SheetProperties dataSourceSheetProperties:@DataSourceSheetProperties gridProperties:@GridProperties hidden:b index:i
  rightToLeft:b sheetId:i sheetType:=E58 tabColor:@Color tabColorStyle:@ColorStyle title:s
Slicer position:@EmbeddedObjectPosition slicerId:i spec:@SlicerSpec
SlicerSpec applyToPivotTables:b backgroundColor:@Color backgroundColorStyle:@ColorStyle columnIndex:i
  dataRange:@GridRange filterCriteria:@FilterCriteria horizontalAlignment:=E15 textFormat:@TextFormat title:s
SortRangeRequest range:@GridRange sortSpecs:[@SortSpec
SortSpec backgroundColor:@Color backgroundColorStyle:@ColorStyle dataSourceColumnReference:@DataSourceColumnReference
  dimensionIndex:i foregroundColor:@Color foregroundColorStyle:@ColorStyle sortOrder:=E49
SourceAndDestination dimension:=E0 fillLength:i source:@GridRange
Spreadsheet comments:[@CommentThread commentsViewMode:=E9 dataSourceSchedules:[@DataSourceRefreshSchedule
  dataSources:[@DataSource developerMetadata:[@DeveloperMetadata namedRanges:[@NamedRange
  properties:@SpreadsheetProperties sheets:[@Sheet spreadsheetId:s spreadsheetUrl:s
SpreadsheetProperties autoRecalc:=E59 defaultFormat:@CellFormat importFunctionsExternalUrlAccessAllowed:b
  iterativeCalculationSettings:@IterativeCalculationSettings locale:s spreadsheetTheme:@SpreadsheetTheme timeZone:s
  title:s
SpreadsheetTheme primaryFontFamily:s themeColors:[@ThemeColorPair
Table columnProperties:[@TableColumnProperties name:s range:@GridRange rowsProperties:@TableRowsProperties tableId:s
TableColumnDataValidationRule condition:@BooleanCondition
TableColumnProperties columnIndex:i columnName:s columnType:=E60 dataValidationRule:@TableColumnDataValidationRule
TableRowsProperties firstBandColorStyle:@ColorStyle footerColorStyle:@ColorStyle headerColorStyle:@ColorStyle
  secondBandColorStyle:@ColorStyle
TextFormat bold:b fontFamily:s fontSize:i foregroundColor:@Color foregroundColorStyle:@ColorStyle italic:b link:@Link
  strikethrough:b underline:b
TextFormatRun format:@TextFormat startIndex:i
TextPosition horizontalAlignment:=E15
TextRotation angle:i vertical:b
TextToColumnsRequest delimiter:s delimiterType:=E61 source:@GridRange
ThemeColorPair color:@ColorStyle colorType:=E24
TimeOfDay hours:i minutes:i nanos:i seconds:i
TreemapChartColorScale maxValueColor:@Color maxValueColorStyle:@ColorStyle midValueColor:@Color
  midValueColorStyle:@ColorStyle minValueColor:@Color minValueColorStyle:@ColorStyle noDataColor:@Color
  noDataColorStyle:@ColorStyle
TreemapChartSpec colorData:@ChartData colorScale:@TreemapChartColorScale headerColor:@Color
  headerColorStyle:@ColorStyle hideTooltips:b hintedLevels:i labels:@ChartData levels:i maxValue:d minValue:d
  parentLabels:@ChartData sizeData:@ChartData textFormat:@TextFormat
TrimWhitespaceRequest range:@GridRange
TrimWhitespaceResponse cellsChangedCount:i
UnmergeCellsRequest range:@GridRange
UpdateBandingRequest bandedRange:@BandedRange fields:s
UpdateBordersRequest bottom:@Border innerHorizontal:@Border innerVertical:@Border left:@Border range:@GridRange
  right:@Border top:@Border
UpdateCellsRequest fields:s range:@GridRange rows:[@RowData start:@GridCoordinate
UpdateChartSpecRequest chartId:i spec:@ChartSpec
UpdateCommentPostRequest commentId:s content:s postId:s
UpdateConditionalFormatRuleRequest index:i newIndex:i rule:@ConditionalFormatRule sheetId:i
UpdateConditionalFormatRuleResponse newIndex:i newRule:@ConditionalFormatRule oldIndex:i
  oldRule:@ConditionalFormatRule
UpdateDataSourceRequest dataSource:@DataSource fields:s
UpdateDataSourceResponse dataExecutionStatus:@DataExecutionStatus dataSource:@DataSource
UpdateDeveloperMetadataRequest dataFilters:[@DataFilter developerMetadata:@DeveloperMetadata fields:s
UpdateDeveloperMetadataResponse developerMetadata:[@DeveloperMetadata
UpdateDimensionGroupRequest dimensionGroup:@DimensionGroup fields:s
UpdateDimensionPropertiesRequest dataSourceSheetRange:@DataSourceSheetDimensionRange fields:s
  properties:@DimensionProperties range:@DimensionRange
UpdateEmbeddedObjectBorderRequest border:@EmbeddedObjectBorder fields:s objectId:i
UpdateEmbeddedObjectPositionRequest fields:s newPosition:@EmbeddedObjectPosition objectId:i
UpdateEmbeddedObjectPositionResponse position:@EmbeddedObjectPosition
UpdateFilterViewRequest fields:s filter:@FilterView
UpdateNamedRangeRequest fields:s namedRange:@NamedRange
UpdateProtectedRangeRequest fields:s protectedRange:@ProtectedRange
UpdateSheetPropertiesRequest fields:s properties:@SheetProperties
UpdateSlicerSpecRequest fields:s slicerId:i spec:@SlicerSpec
UpdateSpreadsheetPropertiesRequest fields:s properties:@SpreadsheetProperties
UpdateTableRequest fields:s table:@Table
UpdateValuesByDataFilterResponse dataFilter:@DataFilter updatedCells:i updatedColumns:i updatedData:@ValueRange
  updatedRange:s updatedRows:i
UpdateValuesResponse spreadsheetId:s updatedCells:i updatedColumns:i updatedData:@ValueRange updatedRange:s
  updatedRows:i
ValueRange majorDimension:=E0 range:s values:[[*
WaterfallChartColumnStyle color:@Color colorStyle:@ColorStyle label:s
WaterfallChartCustomSubtotal dataIsSubtotal:b label:s subtotalIndex:i
WaterfallChartDomain data:@ChartData reversed:b
WaterfallChartSeries customSubtotals:[@WaterfallChartCustomSubtotal data:@ChartData dataLabel:@DataLabel
  hideTrailingSubtotal:b negativeColumnsStyle:@WaterfallChartColumnStyle
  positiveColumnsStyle:@WaterfallChartColumnStyle subtotalColumnsStyle:@WaterfallChartColumnStyle
WaterfallChartSpec connectorLineStyle:@LineStyle domain:@WaterfallChartDomain firstValueIsTotal:b hideConnectorLines:b
  series:[@WaterfallChartSeries stackedType:=E62 totalDataLabel:@DataLabel
"""

ENUMS = """
E0 DIMENSION_UNSPECIFIED ROWS COLUMNS
E1 COMPARISON_TYPE_UNDEFINED ABSOLUTE_DIFFERENCE PERCENTAGE_DIFFERENCE
E2 BASIC_CHART_AXIS_POSITION_UNSPECIFIED BOTTOM_AXIS LEFT_AXIS RIGHT_AXIS
E3 BASIC_CHART_TYPE_UNSPECIFIED BAR LINE AREA COLUMN SCATTER COMBO STEPPED_AREA
E4 BASIC_CHART_COMPARE_MODE_UNSPECIFIED DATUM CATEGORY
E5 BASIC_CHART_LEGEND_POSITION_UNSPECIFIED BOTTOM_LEGEND LEFT_LEGEND RIGHT_LEGEND TOP_LEGEND NO_LEGEND
E6 BASIC_CHART_STACKED_TYPE_UNSPECIFIED NOT_STACKED STACKED PERCENT_STACKED
E7 SERIAL_NUMBER FORMATTED_STRING
E8 FORMATTED_VALUE UNFORMATTED_VALUE FORMULA
E9 COMMENTS_VIEW_MODE_UNSPECIFIED COMMENTS_VIEW_MODE_DEFAULT_FOR_CURRENT_ACCESS COMMENTS_VIEW_MODE_OMITTED
  COMMENTS_VIEW_MODE_INCLUDED
E10 COMMENT_UPDATE_STATE_UNSPECIFIED NO_UPDATES_REQUESTED ALL_SAVED ALL_FAILED_UNKNOWN_REASON
E11 INPUT_VALUE_OPTION_UNSPECIFIED RAW USER_ENTERED
E12 CONDITION_TYPE_UNSPECIFIED NUMBER_GREATER NUMBER_GREATER_THAN_EQ NUMBER_LESS NUMBER_LESS_THAN_EQ NUMBER_EQ
  NUMBER_NOT_EQ NUMBER_BETWEEN NUMBER_NOT_BETWEEN TEXT_CONTAINS TEXT_NOT_CONTAINS TEXT_STARTS_WITH TEXT_ENDS_WITH
  TEXT_EQ TEXT_IS_EMAIL TEXT_IS_URL DATE_EQ DATE_BEFORE DATE_AFTER DATE_ON_OR_BEFORE DATE_ON_OR_AFTER DATE_BETWEEN
  DATE_NOT_BETWEEN DATE_IS_VALID ONE_OF_RANGE ONE_OF_LIST BLANK NOT_BLANK CUSTOM_FORMULA BOOLEAN TEXT_NOT_EQ
  DATE_NOT_EQ FILTER_EXPRESSION
E13 STYLE_UNSPECIFIED DOTTED DASHED SOLID SOLID_MEDIUM SOLID_THICK NONE DOUBLE
E14 BUBBLE_CHART_LEGEND_POSITION_UNSPECIFIED BOTTOM_LEGEND LEFT_LEGEND RIGHT_LEGEND TOP_LEGEND NO_LEGEND INSIDE_LEGEND
E15 HORIZONTAL_ALIGN_UNSPECIFIED LEFT CENTER RIGHT
E16 HYPERLINK_DISPLAY_TYPE_UNSPECIFIED LINKED PLAIN_TEXT
E17 TEXT_DIRECTION_UNSPECIFIED LEFT_TO_RIGHT RIGHT_TO_LEFT
E18 VERTICAL_ALIGN_UNSPECIFIED TOP MIDDLE BOTTOM
E19 WRAP_STRATEGY_UNSPECIFIED OVERFLOW_CELL LEGACY_WRAP CLIP WRAP
E20 DEFAULT_VIEW_WINDOW_MODE VIEW_WINDOW_MODE_UNSUPPORTED EXPLICIT PRETTY
E21 CHART_AGGREGATE_TYPE_UNSPECIFIED AVERAGE COUNT MAX MEDIAN MIN SUM
E22 CHART_DATE_TIME_RULE_TYPE_UNSPECIFIED SECOND MINUTE HOUR HOUR_MINUTE HOUR_MINUTE_AMPM DAY_OF_WEEK DAY_OF_YEAR
  DAY_OF_MONTH DAY_MONTH MONTH QUARTER YEAR YEAR_MONTH YEAR_QUARTER YEAR_MONTH_DAY
E23 CHART_HIDDEN_DIMENSION_STRATEGY_UNSPECIFIED SKIP_HIDDEN_ROWS_AND_COLUMNS SKIP_HIDDEN_ROWS SKIP_HIDDEN_COLUMNS
  SHOW_ALL
E24 THEME_COLOR_TYPE_UNSPECIFIED TEXT BACKGROUND ACCENT1 ACCENT2 ACCENT3 ACCENT4 ACCENT5 ACCENT6 LINK
E25 STATUS_UNSPECIFIED OPEN RESOLVED
E26 RELATIVE_DATE_UNSPECIFIED PAST_YEAR PAST_MONTH PAST_WEEK YESTERDAY TODAY TOMORROW
E27 NORMAL TRANSPOSE
E28 PASTE_NORMAL PASTE_VALUES PASTE_FORMAT PASTE_NO_BORDERS PASTE_FORMULA PASTE_DATA_VALIDATION
  PASTE_CONDITIONAL_FORMATTING
E29 DATA_EXECUTION_ERROR_CODE_UNSPECIFIED TIMED_OUT TOO_MANY_ROWS TOO_MANY_COLUMNS TOO_MANY_CELLS ENGINE
  PARAMETER_INVALID UNSUPPORTED_DATA_TYPE DUPLICATE_COLUMN_NAMES INTERRUPTED CONCURRENT_QUERY OTHER
  TOO_MANY_CHARS_PER_CELL DATA_NOT_FOUND PERMISSION_DENIED MISSING_COLUMN_ALIAS OBJECT_NOT_FOUND OBJECT_IN_ERROR_STATE
  OBJECT_SPEC_INVALID DATA_EXECUTION_CANCELLED
E30 DATA_EXECUTION_STATE_UNSPECIFIED NOT_STARTED RUNNING CANCELLING SUCCEEDED FAILED
E31 DATA_LABEL_PLACEMENT_UNSPECIFIED CENTER LEFT RIGHT ABOVE BELOW INSIDE_END INSIDE_BASE OUTSIDE_END
E32 DATA_LABEL_TYPE_UNSPECIFIED NONE DATA CUSTOM
E33 DATA_SOURCE_REFRESH_SCOPE_UNSPECIFIED ALL_DATA_SOURCES
E34 DAY_OF_WEEK_UNSPECIFIED MONDAY TUESDAY WEDNESDAY THURSDAY FRIDAY SATURDAY SUNDAY
E35 DATA_SOURCE_TABLE_COLUMN_SELECTION_TYPE_UNSPECIFIED SELECTED SYNC_ALL
E36 DATE_TIME_RULE_TYPE_UNSPECIFIED SECOND MINUTE HOUR HOUR_MINUTE HOUR_MINUTE_AMPM DAY_OF_WEEK DAY_OF_YEAR
  DAY_OF_MONTH DAY_MONTH MONTH QUARTER YEAR YEAR_MONTH YEAR_QUARTER YEAR_MONTH_DAY
E37 DEVELOPER_METADATA_VISIBILITY_UNSPECIFIED DOCUMENT PROJECT
E38 DEVELOPER_METADATA_LOCATION_TYPE_UNSPECIFIED ROW COLUMN SHEET SPREADSHEET
E39 DEVELOPER_METADATA_LOCATION_MATCHING_STRATEGY_UNSPECIFIED EXACT_LOCATION INTERSECTING_LOCATION
E40 ERROR_TYPE_UNSPECIFIED ERROR NULL_VALUE DIVIDE_BY_ZERO VALUE REF NAME NUM N_A LOADING
E41 HISTOGRAM_CHART_LEGEND_POSITION_UNSPECIFIED BOTTOM_LEGEND LEFT_LEGEND RIGHT_LEGEND TOP_LEGEND NO_LEGEND
  INSIDE_LEGEND
E42 INTERPOLATION_POINT_TYPE_UNSPECIFIED MIN MAX NUMBER PERCENT PERCENTILE
E43 LINE_DASH_TYPE_UNSPECIFIED INVISIBLE CUSTOM SOLID DOTTED MEDIUM_DASHED MEDIUM_DASHED_DOTTED LONG_DASHED
  LONG_DASHED_DOTTED
E44 MERGE_ALL MERGE_COLUMNS MERGE_ROWS
E45 NUMBER_FORMAT_TYPE_UNSPECIFIED TEXT NUMBER PERCENT CURRENCY DATE TIME DATE_TIME SCIENTIFIC
E46 ORG_CHART_LABEL_SIZE_UNSPECIFIED SMALL MEDIUM LARGE
E47 DISPLAY_FORMAT_UNSPECIFIED DEFAULT LAST_NAME_COMMA_FIRST_NAME EMAIL
E48 PIE_CHART_LEGEND_POSITION_UNSPECIFIED BOTTOM_LEGEND LEFT_LEGEND RIGHT_LEGEND TOP_LEGEND NO_LEGEND LABELED_LEGEND
E49 SORT_ORDER_UNSPECIFIED ASCENDING DESCENDING
E50 HORIZONTAL VERTICAL
E51 PIVOT_VALUE_CALCULATED_DISPLAY_TYPE_UNSPECIFIED PERCENT_OF_ROW_TOTAL PERCENT_OF_COLUMN_TOTAL
  PERCENT_OF_GRAND_TOTAL
E52 PIVOT_STANDARD_VALUE_FUNCTION_UNSPECIFIED SUM COUNTA COUNT COUNTUNIQUE AVERAGE MAX MIN MEDIAN PRODUCT STDEV STDEVP
  VAR VARP CUSTOM NONE
E53 POINT_SHAPE_UNSPECIFIED CIRCLE DIAMOND HEXAGON PENTAGON SQUARE STAR TRIANGLE X_MARK
E54 COMMENT_ACTION_TYPE_UNSPECIFIED NO_COMMENT_ACTION_CHANGE RESOLVE REOPEN
E55 REFRESH_CANCELLATION_ERROR_CODE_UNSPECIFIED EXECUTION_NOT_FOUND CANCEL_PERMISSION_DENIED QUERY_EXECUTION_COMPLETED
  CONCURRENT_CANCELLATION CANCEL_OTHER_ERROR
E56 REFRESH_CANCELLATION_STATE_UNSPECIFIED CANCEL_SUCCEEDED CANCEL_FAILED
E57 CHART_NUMBER_FORMAT_SOURCE_UNDEFINED FROM_DATA CUSTOM
E58 SHEET_TYPE_UNSPECIFIED GRID OBJECT DATA_SOURCE
E59 RECALCULATION_INTERVAL_UNSPECIFIED ON_CHANGE MINUTE HOUR
E60 COLUMN_TYPE_UNSPECIFIED DOUBLE CURRENCY PERCENT DATE TIME DATE_TIME TEXT BOOLEAN DROPDOWN FILES_CHIP PEOPLE_CHIP
  FINANCE_CHIP PLACE_CHIP RATINGS_CHIP
E61 DELIMITER_TYPE_UNSPECIFIED COMMA SEMICOLON PERIOD SPACE CUSTOM AUTODETECT
E62 WATERFALL_STACKED_TYPE_UNSPECIFIED STACKED SEQUENTIAL
"""
